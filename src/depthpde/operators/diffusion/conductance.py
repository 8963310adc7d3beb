"""How different the two sites of an edge are: what content-dependent diffusion is driven by.

    q_e = Σ_d w_d (u_j,d − u_i,d)²,    e = (i, j = i + 1)

Derivatives, with h_e = ∂loss/∂q_e:    ∂u = −2 w · div(h Gu)        ∂w_d = Σ_e h_e (u_j,d − u_i,d)²

Cost on the CPU: one read of the field forward; one read and one write backward.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from depthpde.operators.diffusion.operator import needs_composite
from depthpde.operators.kernels.compilation import kernel, sum_kernel
from depthpde.operators.kernels.threads import launch, tile_length
from depthpde.operators.laplacian import difference
from depthpde.shapes import Edges, Field


def edge_distance(u: Field, weights: Tensor, edges: Edges | None = None) -> Tensor:
    """Measure the weighted squared difference along every edge, [batch, length − 1, 1].

    Args:
        u: The field.
        weights: w, [dim], not negative.
        edges: True where an edge is open; a cut one counts as 0, whatever stands beyond it.
    """
    if u.device.type != "cpu" or needs_composite():
        return composite(u, weights, edges)
    distance: Tensor = _distance(u, weights)
    return distance if edges is None else torch.where(edges[..., None], distance, 0.0)


def composite(u: Field, weights: Tensor, edges: Edges | None = None) -> Tensor:
    """Measure it with torch operations."""
    dtype = torch.promote_types(u.dtype, weights.dtype)
    gap = difference(u.to(dtype))
    if edges is not None:
        gap = torch.where(edges[..., None], gap, 0.0)
    return (gap**2 @ weights.to(dtype)[:, None]).to(u.dtype)


@sum_kernel
def distance(u, weights, out, tile, first, last):  # type: ignore[no-untyped-def]
    """Sum over the features of every edge."""
    _, length, dim = u.shape
    tiles = (length + tile - 1) // tile
    for task in range(first, last):
        b, start = task // tiles, (task % tiles) * tile
        for i in range(start, min(length - 1, start + tile)):
            near, far = u[b, i], u[b, i + 1]
            total = weights[0] * 0
            for d in range(dim):
                gap = far[d] - near[d]
                total += weights[d] * gap * gap
            out[b, i, 0] = total


@kernel
def distance_adjoint(h, u, weights, out, partial, first, last):  # type: ignore[no-untyped-def]
    """Send the gradient of every edge to its two sites and to the weights."""
    _, length, dim = u.shape
    for b in range(first, last):
        total = np.zeros(dim, u.dtype)
        flux = np.zeros(dim, u.dtype)
        for i in range(length):
            here, there = u[b, i], out[b, i]
            if i + 1 < length and h[b, i, 0] != 0:  # a cut edge may lead to what is no number
                far, pull = u[b, i + 1], h[b, i, 0]
                for d in range(dim):
                    gap = far[d] - here[d]
                    new = 2 * pull * weights[d] * gap
                    total[d] += pull * gap * gap
                    there[d] = flux[d] - new
                    flux[d] = new
            else:
                for d in range(dim):
                    there[d] = flux[d]
                    flux[d] = 0
        for d in range(dim):
            partial[b, d] = total[d]


@torch.library.custom_op("depthpde::edge_distance", mutates_args=())
def _distance(u: Tensor, weights: Tensor) -> Tensor:
    dtype = torch.float64 if u.dtype == torch.float64 else torch.float32
    field = u.detach().to(dtype).contiguous()
    out = torch.empty(u.shape[0], u.shape[1] - 1, 1, dtype=dtype, device="cpu")
    if out.numel():
        scale = weights.detach().to(dtype)
        tile = tile_length(u.shape[0], u.shape[1])
        tasks = u.shape[0] * -(-u.shape[1] // tile)
        launch(distance, tasks, u.numel(), field.numpy(), scale.numpy(), out.numpy(), tile)
    return out.to(u.dtype)


@torch.library.custom_op("depthpde::edge_distance_adjoint", mutates_args=())
def _distance_adjoint(h: Tensor, u: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    dtype = torch.float64 if u.dtype == torch.float64 else torch.float32
    field, pull = u.detach().to(dtype).contiguous(), h.detach().to(dtype).contiguous()
    out, partial = (
        torch.empty_like(field),
        torch.zeros(u.shape[0], u.shape[2], dtype=dtype, device="cpu"),
    )
    scale = weights.detach().to(dtype)
    arrays = (each.numpy() for each in (pull, field, scale, out, partial))
    launch(distance_adjoint, u.shape[0], u.numel(), *arrays)
    return out.to(u.dtype), partial.sum(dim=0).to(weights.dtype)


@_distance.register_fake
def _(u: Tensor, weights: Tensor) -> Tensor:
    return u.new_empty(u.shape[0], u.shape[1] - 1, 1)


@_distance_adjoint.register_fake
def _(h: Tensor, u: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    return torch.empty_like(u, memory_format=torch.contiguous_format), torch.empty_like(weights)


def _save(ctx, inputs, output):  # type: ignore[no-untyped-def]
    ctx.save_for_backward(*inputs)


def _second(ctx, grad_u, grad_weights):  # type: ignore[no-untyped-def]
    def first(h: Tensor, u: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        grads: tuple[Tensor, Tensor] = torch.func.vjp(composite, u, weights)[1](h)
        return grads

    return torch.func.vjp(first, *ctx.saved_tensors)[1]((grad_u, grad_weights))


_distance.register_autograd(
    lambda ctx, h: _distance_adjoint(h, *ctx.saved_tensors), setup_context=_save
)
_distance_adjoint.register_autograd(_second, setup_context=_save)


@_distance.register_vmap
def _(info, in_dims, u, weights):  # type: ignore[no-untyped-def]
    u, weights = (
        x.expand(info.batch_size, *x.shape) if axis is None else x.movedim(axis, 0)
        for x, axis in zip((u, weights), in_dims, strict=True)
    )
    gap = u[:, :, 1:] - u[:, :, :-1]
    return (gap**2 * weights[:, None, None]).sum(dim=-1, keepdim=True), 0
