"""Softmax attention on the CPU in one pass each way: no matrix [length, length] is kept.

    out_i = Σ_j p_ij v_j,    p_ij = 2^(s_ij − lse_i),    s_ij = log₂e · ⟨q_i, k_j⟩ / √head_dim

    dv_j = Σ_i p_ij g_i      dq_i = Σ_j ds_ij k_j / √head_dim      dk_j = Σ_i ds_ij q_i / √head_dim
    ds_ij = p_ij (⟨g_i, v_j⟩ − ⟨g_i, out_i⟩)

The kernels stand in `kernels/attention.py`; keys that are padding cost nothing.

Memory traffic: q, k, v and out once forward; those, g and three gradients once backward.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from depthpde.operators.diffusion.operator import apply_plainly, runs_eagerly
from depthpde.operators.interaction import attention_weights
from depthpde.operators.kernels.attention import attend, attend_adjoint
from depthpde.operators.kernels.lanes import FLOATS
from depthpde.operators.kernels.threads import launch
from depthpde.shapes import Mask

LONGEST = 2048
"""Keys up to which the scores of a few queries stay in a core's own cache."""
_LOG2E = 1.4426950408889634


def supports(query: Tensor, key: Tensor, valid_mask: Mask | None, *, causal: bool) -> bool:
    """Tell whether the kernel does this case, here and now.

    Args:
        query: [batch, heads, length, head_dim].
        key: [batch, heads, keys, head_dim].
        valid_mask: True = real key, [batch, keys].
        causal: Whether a site sees only itself and the sites before it.
    """
    batch, _, length, head_dim = query.shape
    return (
        runs_eagerly(query)
        and query.dtype == key.dtype == torch.float32
        and fits_registers(head_dim, length)
        and 0 < key.shape[2] <= LONGEST
        and batch > 0
        and not (causal and (valid_mask is not None or length != key.shape[2]))
        # switched off where somebody asks for the plain composite
        and torch.backends.cuda.flash_sdp_enabled()  # type: ignore[no-untyped-call]
    )


def fits_registers(head_dim: int, length: int) -> bool:
    """Tell whether heads of this width and this many queries fill this processor's registers."""
    return head_dim % FLOATS == 0 and length >= 2 * FLOATS


def fused_attention(
    query: Tensor, key: Tensor, value: Tensor, valid_mask: Mask | None, *, causal: bool
) -> Tensor:
    """Mix values by softmax weights, in one pass.

        out = softmax(q kᵀ / √head_dim) v        over keys that are seen

    A sequence of nothing but padding sees all of it. Arguments as of `supports`, where it says so.
    """
    mixed: Tensor = apply_plainly(_Attend, query, key, value, valid_mask, causal)
    return mixed


class _Attend(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, valid_mask: Mask | None, causal: bool
    ) -> Tensor:
        q, k, v = (_rows(each) for each in (query, key, value))
        out = torch.empty_like(q)
        lines = -(-q.shape[1] // (2 * FLOATS)) * 2 * FLOATS
        top, sums = (q.new_empty(q.shape[0], q.shape[2], lines) for _ in range(2))
        shape, gains, seen = _settings(q, k, valid_mask, causal)
        launch(
            attend, shape[0] * shape[2], q.numel() * shape[3],
            *map(_flat, (q, k, v, out, top, sums)), seen, shape, gains,
        )  # fmt: skip
        ctx.save_for_backward(query, key, value, valid_mask, out, top.add_(sums.log2_()))
        ctx.causal = causal
        return out.transpose(1, 2)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, valid_mask, out, lse = ctx.saved_tensors
        if torch.is_grad_enabled():  # a gradient of this gradient will be asked for
            mixed = _composite(query, key, value, valid_mask, causal=ctx.causal)
            inputs = [each for each in (query, key, value) if each.requires_grad]
            found = iter(torch.autograd.grad(mixed, inputs, grads[0], create_graph=True))
            second = (next(found) if each.requires_grad else None for each in (query, key, value))
            return (*second, None, None)
        q, k, v, g = (_rows(each) for each in (query, key, value, grads[0]))
        into = [torch.empty_like(each) for each in (q, k, v)]
        shape, gains, seen = _settings(q, k, valid_mask, ctx.causal)
        launch(
            attend_adjoint, shape[0] * shape[2], q.numel() * shape[3],
            *map(_flat, (q, k, v, out, lse, g, *into)), seen, shape, gains,
        )  # fmt: skip
        return (*(each.transpose(1, 2) for each in into), None, None)


def _composite(
    query: Tensor, key: Tensor, value: Tensor, valid_mask: Mask | None, *, causal: bool
) -> Tensor:
    """Do the same by torch operations, for derivatives of any order."""
    if valid_mask is None:
        return attention_weights(query, key, causal=causal) @ value
    seen = (valid_mask | ~valid_mask.any(dim=1, keepdim=True))[:, None, None, :]
    scores = (query @ key.mT) * query.shape[-1] ** -0.5
    return torch.softmax(scores.masked_fill(~seen, -torch.inf), dim=-1) @ value


def _rows(u: Tensor) -> Tensor:
    """Return [batch, length, heads, head_dim]; no copy where heads were split off a field."""
    return u.detach().transpose(1, 2).contiguous()


def _flat(u: Tensor) -> NDArray[Any]:
    return u.numpy().reshape(-1)


def _settings(
    q: Tensor, k: Tensor, valid_mask: Mask | None, causal: bool
) -> tuple[tuple[int, ...], tuple[np.float32, np.float32], NDArray[np.uint8]]:
    """Return (batch, queries, heads, keys, head_dim, causal), the gains and the keys seen."""
    batch, length, heads, head_dim = q.shape
    shape = (batch, length, heads, k.shape[1], head_dim, int(causal))
    gain = head_dim**-0.5
    if valid_mask is None:
        seen = np.zeros((0, 0), np.uint8)
    else:
        open_rows = valid_mask | ~valid_mask.any(dim=1, keepdim=True)
        seen = open_rows.contiguous().numpy().view(np.uint8)
    return shape, (np.float32(gain * _LOG2E), np.float32(gain)), seen
