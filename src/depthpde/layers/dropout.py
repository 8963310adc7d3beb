"""Dropout as a function of a seed: which numbers fall is computed, not drawn one after another.

    drop(u)_i = u_i / (1 − share)  where  hash(seed, i) ≥ share · 2³²,   else 0

Each number stays with probability 1 − share (to 2⁻³²) and the mean is kept. The map is linear and
its own adjoint, so the backward is the map again and no mask is kept. Cost: one pass over memory;
torch draws a Mersenne number for each entry, which takes more than ten times as long on a CPU.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from depthpde.operators.diffusion.operator import runs_eagerly
from depthpde.operators.kernels.compilation import inline, kernel
from depthpde.operators.kernels.threads import launch

CHUNK = 16_384
"""Numbers that one thread takes at once."""
MOST = 2**32
"""More numbers than the hash tells apart go through torch's own."""


def dropout(u: Tensor, share: float) -> Tensor:
    """Set a random share of numbers to zero, and scale the others so that the mean is kept.

        u_i ← 0 with probability `share`, else u_i / (1 − share)

    The seed comes from torch's own random stream, so ``torch.manual_seed`` decides the result.
    Other devices and precisions, and every transform of torch (compile, export, vmap, forward
    mode), go through ``F.dropout``: the same distribution, other numbers.

    Args:
        u: Any tensor.
        share: How many fall, in [0, 1).

    Example:
        >>> torch.manual_seed(0)
        >>> dropout(torch.ones(4, 4), 0.5).unique()
        tensor([0., 2.])
    """
    if not share:
        return u
    if not supports(u) or share >= 1.0:
        return F.dropout(u, share)
    seed = int(torch.randint(2**62, ()))
    return _Drop.apply(u, share, seed)  # type: ignore[no-untyped-call]


def supports(u: Tensor) -> bool:
    """Return whether the kernel does this case, here and now."""
    return runs_eagerly(u) and u.dtype in (torch.float32, torch.float64) and u.numel() < MOST


class _Drop(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, u: Tensor, share: float, seed: int) -> Tensor:
        ctx.share, ctx.seed = share, seed
        given = u.detach().contiguous()
        out = torch.empty_like(given)
        flat, dropped = given.view(-1).numpy(), out.view(-1).numpy()
        launch(
            _drop, -(-flat.size // CHUNK), flat.size, flat, dropped,
            flat.dtype.type(1.0 / (1.0 - share)), np.uint32(min(round(share * MOST), MOST - 1)),
            np.uint32(seed & 0xFFFFFFFF), np.uint32(seed >> 32),
        )  # fmt: skip
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        return _Drop.apply(grads[0], ctx.share, ctx.seed), None, None  # type: ignore[no-untyped-call]


@inline
def _hash(index, low, high):  # type: ignore[no-untyped-def]
    """Mix an index with 64 bits of seed, half of them in the middle of a 32-bit finalizer."""
    x = np.uint32(index * np.uint32(0x9E3779B9) + low)
    x = np.uint32((x ^ (x >> np.uint32(16))) * np.uint32(0x21F0AAAD))
    x = np.uint32(x ^ high)
    x = np.uint32((x ^ (x >> np.uint32(15))) * np.uint32(0x735A2D97))
    return np.uint32(x ^ (x >> np.uint32(15)))


@kernel
def _drop(u, out, gain, threshold, low, high, start_chunk, end_chunk):  # type: ignore[no-untyped-def]
    zero = u.dtype.type(0)
    for chunk in range(start_chunk, end_chunk):
        first = chunk * CHUNK
        here, there = u[first : first + CHUNK], out[first : first + CHUNK]
        # The index of the first is part of the seed: a loop from 0 is what LLVM takes in lanes.
        start = np.uint32(low + np.uint32(first) * np.uint32(0x9E3779B9))
        for i in range(here.shape[0]):
            kept = _hash(np.uint32(i), start, high) >= threshold
            there[i] = here[i] * gain if kept else zero
