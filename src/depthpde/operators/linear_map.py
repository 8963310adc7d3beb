"""A linear map of every site on the CPU, by the library that fills this processor's registers.

    out = u Wᵀ + b        du = g W        dW = gᵀ u        db = Σ g

torch multiplies float32 matrices by MKL, which on processors of AMD leaves half of a register of
512 bits empty. oneDNN, which torch carries as well, does not: 2.2 times as fast there, and 1.15
times if held to 256 bits (torch 2.13, one core of an EPYC, 2,048 to 8,192 rows of 64 to 512).
What this file sends to oneDNN differs from torch's in the last bits.

oneDNN prepares itself for every shape it meets, for about as long as such a product takes, and
remembers a thousand: only whole groups of rows are sent, so that batches of many lengths do not
meet a new shape each time. Whether a product is sent follows from its shape and the processor
alone, so a resumed run has the bits of an unbroken one.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
import torch
from torch import Tensor
from torch.nn import functional as F

from depthpde.operators.diffusion.operator import apply_plainly, runs_eagerly
from depthpde.operators.kernels.lanes import FLOATS
from depthpde.shapes import Field

WHOLE = 64
"""Rows of a product that is sent to oneDNN come in whole groups of so many."""
FASTER = llvm.get_host_cpu_name().startswith("znver") and hasattr(
    torch.ops.mkldnn, "_linear_pointwise"
)
"""Whether oneDNN is the faster library here: on AMD's Zen, where MKL keeps to narrow registers."""
_WIDE = FLOATS == 16
LEAST = 2**21 if _WIDE else 2**23
"""Multiplications below which what a call of oneDNN costs is more than it saves."""
LEAST_GRADIENT, LEAST_WEIGHTS = 2**23, 2**12
"""The same for gᵀ u, whose factors oneDNN turns first, and the least size of its result."""
PLAIN = (Tensor, torch.nn.Parameter)
"""Types whose numbers lie in their own memory; those of other libraries are torch's to map."""


def linear_map(u: Field, weight: Tensor, bias: Tensor | None = None) -> Field:
    """Map every site linearly.

        out = u Wᵀ + b

    Args:
        u: The field, [..., inner].
        weight: [outer, inner].
        bias: [outer] or None.
    """
    if not _supports(u, weight, bias):
        return F.linear(u, weight, bias)
    out: Field = apply_plainly(_LinearMap, u, weight, bias)
    return out


def project(u: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return u Wᵀ + b of rows, without a gradient.

    Args:
        u: [rows, inner], float32, on the CPU.
        weight: [outer, inner].
        bias: [outer] or None.
    """
    if _pays(u.shape[0], weight):
        return _onednn(u, weight, bias)
    return F.linear(u, weight, bias)


def pull_back(g: Tensor, weight: Tensor) -> Tensor:
    """Return g W of rows: the gradient that reaches what was mapped.

    Args:
        g: [rows, outer], float32, on the CPU.
        weight: [outer, inner].
    """
    return _onednn(g, weight.T.contiguous()) if _pays(g.shape[0], weight) else g @ weight


def weight_gradient(g: Tensor, u: Tensor) -> Tensor:
    """Return gᵀ u of rows: the gradient of the weights.

    Args:
        g: [rows, outer], float32, on the CPU.
        u: [rows, inner].
    """
    rows, size = g.shape[0], g.shape[1] * u.shape[1]
    if not (_WIDE and _sent(rows) and size >= LEAST_WEIGHTS and rows * size >= LEAST_GRADIENT):
        return g.T @ u
    # the wider factor is the one that oneDNN packs as weights
    return _onednn(g.T, u.T) if g.shape[1] <= u.shape[1] else _onednn(u.T, g.T).T


class _LinearMap(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, u: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(u, weight, bias)
        return project(_rows(u), weight, bias).view(*u.shape[:-1], -1)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        u, weight, bias = ctx.saved_tensors
        wanted = ctx.needs_input_grad
        if torch.is_grad_enabled():  # a gradient of this gradient will be asked for
            given = [each for each, w in zip((u, weight, bias), wanted, strict=True) if w]
            out = F.linear(u, weight, bias)
            found = iter(torch.autograd.grad(out, given, grads[0], create_graph=True))
            return tuple(next(found) if each else None for each in wanted)
        g = _rows(grads[0])
        return (
            pull_back(g, weight).view(u.shape) if wanted[0] else None,
            weight_gradient(g, _rows(u)) if wanted[1] else None,
            g.sum(0) if wanted[2] else None,
        )


def _supports(u: Tensor, weight: Tensor, bias: Tensor | None) -> bool:
    return (
        FASTER
        and not torch.compiler.is_compiling()
        and type(u) in PLAIN
        and type(weight) in PLAIN
        and u.dtype == weight.dtype == torch.float32
        and weight.device == u.device
        and u.dim() > 1
        and u.shape[-1] == weight.shape[-1]
        and _pays(u.numel() // weight.shape[-1], weight)
        and (bias is None or _supports_bias(weight, bias))
        and runs_eagerly(u)
        and not torch.is_autocast_enabled("cpu")
    )


def _supports_bias(weight: Tensor, bias: Tensor) -> bool:
    """Tell whether a bias has a number of its own for every feature; torch spreads one over all."""
    return bias.dtype == torch.float32 and type(bias) in PLAIN and bias.shape == weight.shape[:1]


def _pays(rows: int, weight: Tensor) -> bool:
    return _sent(rows) and rows * weight.numel() >= LEAST


def _sent(rows: int) -> bool:
    """Tell whether so many rows may be sent to oneDNN: it is there, and not switched off."""
    enabled = torch._C._get_mkldnn_enabled()  # what `torch.backends.mkldnn.enabled` reads
    return FASTER and rows % WHOLE == 0 and enabled


def _rows(u: Tensor) -> Tensor:
    return u.contiguous().view(-1, u.shape[-1])


def _onednn(u: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return u Wᵀ + b by oneDNN, whatever the strides."""
    out: Tensor = torch.ops.mkldnn._linear_pointwise(u, weight, bias, "none", [], "")
    return out
