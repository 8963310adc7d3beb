"""What can be done to a model on purpose: one function a way to break it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from depthpde.doctor.model_map import model_map
from depthpde.layers.diffusion import Diffusion
from depthpde.models.placed import AlongSites
from doctor.patients import Case, Patient


def scaled(patient: Patient, gain: float, *names: str) -> Patient:
    """Multiply the matrices of all blocks whose name holds one of the names (all if none)."""
    with torch.no_grad():
        for name, weight in patient.model.named_parameters():
            inside = any(part in name for part in ("blocks.", "layer.", ".h.", "layers."))
            if inside and weight.ndim > 1 and (not names or any(each in name for each in names)):
                weight.mul_(gain)
    return patient


def one_token(patient: Patient) -> Patient:
    """Let every token id share one vector, and no site be told from another."""
    encoder = patient.model.encoder
    with torch.no_grad():
        encoder.embedding.weight.copy_(encoder.embedding.weight[:1].clone())
    return patient


def copied_tokens(patient: Patient, case: Case) -> Patient:
    """Put the mean token of the sequence at every site, nearly, behind the block in the middle."""

    def average(module: nn.Module, args: Any, output: Any) -> Any:
        u = output[0] if isinstance(output, tuple) else output
        mixed = u.mean(dim=1, keepdim=True) + 5e-3 * u
        return (mixed, *output[1:]) if isinstance(output, tuple) else mixed

    find_blocks(patient.model)[case.blocks // 2].register_forward_hook(average)
    return patient


def find_blocks(model: nn.Module) -> list[nn.Module]:
    return [block.parts for block in model_map(model).blocks]


class Given(nn.Module):
    """A ratio set by hand."""

    def __init__(self, ratio: float) -> None:
        super().__init__()
        self.register_buffer("ratio", torch.tensor([ratio]))

    def forward(self) -> Tensor:
        return self.ratio


def beyond_bound(patient: Patient, ratio: float) -> Patient:
    layers = [each for each in patient.model.modules() if isinstance(each, Diffusion)]
    for layer in layers:
        layer.free = Given(ratio)
    return patient


def two_sided(patient: Patient, case: Case) -> Patient:
    """Put the symmetric stencil where the upwind one belongs."""
    for module in patient.model.modules():
        if isinstance(module, AlongSites):
            module.layer = Diffusion(case.dim, initial_ratio=0.2)
    return patient


def two_sided_by_hook(patient: Patient, case: Case) -> Patient:
    smooth = Diffusion(case.dim, initial_ratio=0.2)
    block = find_blocks(patient.model)[case.blocks // 2]
    block.add_module("smooth", smooth)

    def hook(module: nn.Module, args: Any, output: Any) -> Any:
        if isinstance(output, tuple):
            return (smooth(output[0]), *output[1:])
        return smooth(output)

    block.register_forward_hook(hook)
    return patient


def smoothed(patient: Patient, case: Case) -> Patient:
    """Let heat flow for long behind every block."""
    smooth = Diffusion(case.dim, initial_ratio=0.24, steps=64)

    def hook(module: nn.Module, args: Any, output: Any) -> Any:
        u = output[0] if isinstance(output, tuple) else output
        mixed = smooth(u)
        return (mixed, *output[1:]) if isinstance(output, tuple) else mixed

    for block in find_blocks(patient.model):
        block.register_forward_hook(hook)
    return patient


def dead(patient: Patient, case: Case, *names: str) -> Patient:
    """Zero the matrices of some names in two of the blocks."""
    blocks = find_blocks(patient.model)
    with torch.no_grad():
        for block in blocks[1:3]:
            for name, weight in block.named_parameters():
                if any(each in name for each in names):
                    weight.zero_()
    return patient


def never_active(patient: Patient) -> Patient:
    """Push the feed-forward's units so far down that no token wakes them."""
    with torch.no_grad():
        for block in find_blocks(patient.model)[1:3]:
            block.reaction.enter.bias.fill_(-1e3)
    return patient


def gain_on_stream(patient: Patient, gain: float) -> Patient:
    """Multiply the stream behind every block."""

    def hook(module: nn.Module, args: Any, output: Any) -> Any:
        if isinstance(output, tuple):
            return (gain * output[0], *output[1:])
        return gain * output

    for block in find_blocks(patient.model):
        block.register_forward_hook(hook)
    return patient
