"""What a call that returned must agree with: the dense matrices in float64, and plain loops."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

import depthpde as dp
from depthpde.errors import check_one_of
from depthpde.operators.boundary import open_edges
from depthpde.operators.diffusion import diffusion_2d, reference
from depthpde.operators.diffusion.dispatch import as_edges
from depthpde.operators.diffusion.problem import Problem

SLACK = {torch.float64: 1e-9, torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}
"""What rounding may do to numbers of size one."""
Agrees = Callable[[Mapping[str, Any], Any], str]


def gap(result: Tensor, want: Tensor, u: Tensor, least: float = 0.0) -> str:
    """Say how far a result is from the reference; empty where it is as near as it can be."""
    if result.dtype != u.dtype or result.shape != u.shape:
        return f"got {result.dtype}{list(result.shape)} from {u.dtype}{list(u.shape)}"
    far = (result.detach().double() - want.detach()).abs()
    worst = far.max().item() if far.numel() else 0.0
    return "" if worst <= max(least, SLACK[u.dtype]) else f"{worst:.2g} from the reference"


def dense(given: Mapping[str, Any], result: Tensor) -> str:
    """Compare `diffuse` with the dense matrix in float64."""
    u, ratio = given["u"].detach(), given["ratio"]
    if isinstance(ratio, bool | str) or given.get("steps", 1) is True:
        return "a bool or a string was taken for a number"
    problem = _problem(given, dilation=given.get("dilation", 1))
    walls = {name: given.get(name) for name in ("valid_mask", "segments", "row_length")}
    weights = as_edges(u, ratio, problem).detach().double()
    edges = open_edges(u, **walls, dilation=problem.dilation)
    return gap(result, reference.evolve(u.double(), weights, edges, problem), u)


def dense_2d(given: Mapping[str, Any], result: Tensor) -> str:
    """Compare `diffuse_2d` with the dense matrix in float64."""
    u = given["u"].detach()
    problem = _problem(given, width=given["grid"][1])
    weights = as_edges(u, given["ratio"], problem).detach().double()
    want = diffusion_2d.reference(u.double(), weights, given.get("valid_mask"), problem)
    return gap(result, want, u)


def _problem(given: Mapping[str, Any], **rest: Any) -> Problem:
    scheme = check_one_of("scheme", given.get("scheme", "explicit"), dp.Scheme)
    boundary = check_one_of("boundary", given.get("boundary", "no_flux"), dp.Boundary)
    return Problem(steps=given.get("steps", 1), scheme=scheme, boundary=boundary, **rest)


def conv(given: Mapping[str, Any], result: Any) -> str:
    """Compare `causal_conv1d` with a loop over sites and taps in float64."""
    out = result[0] if isinstance(result, tuple) else result
    x, weight = given["x"].detach().double(), given["weight"].detach().double()
    past, length = weight.shape[1] - 1, x.shape[2]
    before = given.get("initial_states")
    before = x.new_zeros(*x.shape[:2], past) if before is None else before.double()
    numbers = given.get("seq_idx")
    if given.get("cu_seqlens") is not None:
        numbers = (torch.arange(length)[None, :, None] >= given["cu_seqlens"][1:]).sum(-1)
    line, want = torch.cat((before, x), 2), torch.zeros_like(x)
    for t in range(length):
        for k in range(past + 1):
            at = t - past + k
            if numbers is None:
                want[:, :, t] += weight[:, k] * line[:, :, t + k]
            elif at >= 0:
                between = numbers[:, at : t + 1]
                same = (between[:, 1:] == between[:, :-1]).all(dim=1)  # no wall on the way
                want[:, :, t] += weight[:, k] * x[:, :, at] * same[:, None]
    bias = given.get("bias")
    want = want if bias is None else want + bias.double()[:, None]
    want = want if given.get("activation") is None else nn.functional.silu(want)
    return gap(out, want, given["x"])


def in_double(layer: nn.Module) -> Agrees:
    """Compare a layer with itself in float64, on a plain copy of the field."""
    wide = copy.deepcopy(layer).double()

    def agrees(given: Mapping[str, Any], result: Tensor) -> str:
        u = given["u"].detach()
        want = wide(**{**given, "u": u.double().contiguous()})
        return gap(result, want, u, least=1e-6)  # the layer's own parameters are float32

    return agrees


def dense_layer(layer: Any) -> Agrees:
    """Compare a `Diffusion` layer with the dense matrix of its own ratio."""
    about = {"scheme": layer.problem.scheme, "steps": layer.problem.steps}
    return lambda given, result: dense({**given, **about, "ratio": layer.ratio.detach()}, result)
