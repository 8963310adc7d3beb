"""The problems on which every path is judged."""

from __future__ import annotations

import torch
from torch import Tensor

FORMS = ("scalar", "feature", "edge", "edge_feature", "batch_edge")


def field(batch: int, length: int, dim: int, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(1000 * length + dim)
    return torch.randn(batch, length, dim, generator=generator, dtype=torch.float64).to(dtype)


def ratio(form: str, u: Tensor, num_edges: int, bound: float) -> Tensor:
    batch, _, dim = u.shape
    shape = {
        "scalar": (),
        "feature": (dim,),
        "edge": (1, num_edges, 1),
        "edge_feature": (batch, num_edges, dim),
        "batch_edge": (batch, num_edges, 1),
    }[form]
    generator = torch.Generator().manual_seed(7)
    return (bound * torch.rand(shape, generator=generator, dtype=torch.float64)).to(u.dtype)


def mask(u: Tensor) -> Tensor:
    """Right padding of a different length in every sequence, and one hole."""
    batch, length, _ = u.shape
    valid = torch.arange(length)[None] < length - torch.arange(batch)[:, None] * (length // 3)
    if length > 5:
        valid[0, length // 2] = False
    return valid


def value_and_gradients(run, u: Tensor, r: Tensor) -> list[Tensor]:
    u, r = u.detach().clone().requires_grad_(), r.detach().clone().requires_grad_()
    out = run(u, r)
    weights = torch.linspace(-3, 5, out.numel(), dtype=out.dtype).sin().reshape(out.shape)
    if not out.requires_grad:
        return [out]
    return [
        out.detach(),
        *torch.autograd.grad((out * weights).sum(), (u, r), materialize_grads=True),
    ]


def assert_same(got: list[Tensor], wanted: list[Tensor], tolerance: float) -> None:
    """Compare; a gradient of the ratio is a sum over sites, whose error grows as its root."""
    for name, one, other in zip(("value", "grad u", "grad ratio"), got, wanted, strict=False):
        scale = max(1.0, float(other.abs().max())) if other.numel() else 1.0
        if name == "grad ratio":
            scale = max(scale, (wanted[0].shape[0] * wanted[0].shape[1]) ** 0.5)
        worst = float((one - other).abs().max()) / scale if one.numel() else 0.0
        assert worst <= tolerance, f"{name} differs by {worst:.2e} (allowed {tolerance:g})"
