"""Short causal convolutions on the CPU, by the argument names of the causal-conv1d package.

    y_{d,t} = act(b_d + Σ_k w_{d,k} x_{d,t−K+1+k}),    k = 0 … K − 1,  zeros before the beginning

What Mamba and its kin do before their scan. The layout is theirs, [batch, dim, length]; a tensor
that is a transposed [batch, length, dim] is used as it lies. Cost: one read and one write forward,
two reads and one write backward, bias and activation included (`kernels/short_filters`). In double
precision and inside torch's transforms the filter comes first, then bias and activation.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from depthpde.errors import check_flag, check_name, check_tensor
from depthpde.operators.boundary import Boundary, segments_of
from depthpde.operators.diffusion.filtering import convolve
from depthpde.operators.diffusion.operator import is_plain_call
from depthpde.operators.diffusion.problem import Problem
from depthpde.operators.kernels import short_filters
from depthpde.operators.kernels.lanes import show
from depthpde.operators.kernels.threads import edge_array, launch, tile_length
from depthpde.operators.stability import Scheme
from depthpde.shapes import Edges, Field

_ZEROS_BEFORE = Problem(scheme=Scheme.UPWIND, boundary=Boundary.FIXED)


def causal_conv1d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    seq_idx: Tensor | None = None,
    initial_states: Tensor | None = None,
    return_final_states: bool = False,
    activation: str | None = None,
    cu_seqlens: Tensor | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    """Convolve every feature with its own few taps over the past.

        >>> import torch, depthpde as dp
        >>> dp.causal_conv1d(torch.randn(2, 8, 20), torch.randn(8, 4), activation="silu").shape
        torch.Size([2, 8, 20])

    Args:
        x: [batch, dim, length].
        weight: [dim, width]; the last tap is the site's own.
        bias: [dim].
        seq_idx: One number per packed sequence, [batch, length]; different numbers do not mix.
        initial_states: What came before, [batch, dim, width − 1]; zeros by default.
        return_final_states: Also return the last width − 1 inputs, to go on from.
        activation: None, "silu" or "swish".
        cu_seqlens: Where packed sequences begin and the last ends, [sequences + 1], for a batch
            of one; use it or `seq_idx`.
    """
    _check(x, weight, bias, seq_idx, initial_states, activation)
    check_flag("return_final_states", return_final_states)
    if cu_seqlens is not None:
        seq_idx = _numbered(x, seq_idx, cu_seqlens)
    if seq_idx is not None and initial_states is not None:
        raise ValueError(
            "`initial_states` must be left out with packed sequences, got both: every packed "
            "sequence begins with zeros; run the first one alone"
        )
    past = weight.shape[1] - 1
    field = x if initial_states is None else torch.cat((initial_states.to(x.dtype), x), dim=2)
    edges = None if seq_idx is None else seq_idx[:, 1:] == seq_idx[:, :-1]
    fused = field.is_cpu and field.dtype is not torch.float64 and is_plain_call()
    # contiguous here, not inside the node: what it saves must be what it was given, or a second
    # derivative would not reach the field
    run, sites = (_Convolution.apply, field.mT.contiguous()) if fused else (_composite, field.mT)
    out = run(sites, weight, bias, edges, activation is not None)
    out = (out if initial_states is None else out[:, past:]).mT
    if not return_final_states:
        return out
    missing = max(0, past - field.shape[2])
    return out, F.pad(field, (missing, 0))[:, :, field.shape[2] + missing - past :]


def _composite(
    u: Field, weight: Tensor, bias: Tensor | None, edges: Edges | None, silu: bool
) -> Field:
    """Filter [batch, length, dim], then add the bias, then activate."""
    out = convolve(u, weight.mT[None], edges, _ZEROS_BEFORE)
    out = out if bias is None else out + bias.to(out.dtype)
    return F.silu(out) if silu else out


class _Convolution(torch.autograd.Function):
    """The same in one pass each way, rounded once; derivatives of derivatives are the composite's.

    Kept for backward: the inputs alone.
    """

    @staticmethod
    def forward(
        ctx: Any, u: Tensor, weight: Tensor, bias: Tensor | None, edges: Tensor | None, silu: bool
    ) -> Tensor:
        """Filter, add, activate."""
        ctx.save_for_backward(u, weight, bias, edges)
        ctx.silu, out, chunk = silu, torch.empty_like(u), tile_length(*u.shape[:2])
        launch(
            short_filters.convolve, u.shape[0] * -(-u.shape[1] // chunk), u.numel(),
            show(u.detach()), *_filter(weight, bias), edge_array(edges), show(out), tuple(u.shape),
            weight.shape[1], silu, chunk,
        )  # fmt: skip
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        """Give the gradients of field, taps and bias."""
        u, weight, bias, edges = ctx.saved_tensors
        if torch.is_grad_enabled():  # they will be differentiated once more
            given = [each for each in (u, weight, bias) if each is not None and each.requires_grad]
            out = _composite(u, weight, bias, edges, ctx.silu)
            found = iter(torch.autograd.grad(out, given, grads[0], create_graph=True))
            wanted = (each is not None and each.requires_grad for each in (u, weight, bias))
            return (*(next(found) if each else None for each in wanted), None, None)
        chunk, (dim, num_taps) = tile_length(*u.shape[:2]), weight.shape
        tasks, out = u.shape[0] * -(-u.shape[1] // chunk), torch.empty_like(u)
        partial = torch.empty(tasks, (num_taps + 1) * dim)
        launch(
            short_filters.convolve_adjoint, tasks, u.numel(),
            show(grads[0].contiguous()), show(u.detach()), *_filter(weight, bias),
            edge_array(edges), show(out), partial.numpy(), tuple(u.shape), num_taps, ctx.silu,
            chunk,
        )  # fmt: skip
        sums = partial.sum(dim=0).reshape(num_taps + 1, dim)
        of_bias = None if bias is None else sums[-1].to(bias.dtype)
        return out, sums[:-1].mT.to(weight.dtype), of_bias, None, None


def _filter(weight: Tensor, bias: Tensor | None) -> tuple[Any, Any]:
    """Show taps, [width · dim], and bias, [dim], to numba in the precision of computation."""
    taps = weight.detach().mT.to(torch.float32).contiguous()
    offset = torch.zeros(weight.shape[0]) if bias is None else bias.detach().float().contiguous()
    return show(taps), show(offset)


def causal_conv1d_update(
    x: Tensor,
    conv_state: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    activation: str | None = None,
) -> Tensor:
    """Go on by one site, and move the state along, in place.

    Args:
        x: The new inputs, [batch, dim].
        conv_state: The inputs before, [batch, dim, width − 1 or more]; changed.
        weight: [dim, width].
        bias: [dim].
        activation: None, "silu" or "swish".

    >>> state = torch.zeros(2, 8, 3)
    >>> dp.causal_conv1d_update(torch.randn(2, 8), state, torch.randn(8, 4)).shape
    torch.Size([2, 8])
    """
    for name, each in (("x", x), ("conv_state", conv_state), ("weight", weight)):
        check_tensor(name, each)
    if weight.ndim != 2 or weight.shape[1] == 0 or x.ndim != 2:
        raise ValueError(
            "`x` must be [batch, dim] and `weight` [dim, width], got "
            f"{list(x.shape)} and {list(weight.shape)}; one site a call"
        )
    past = weight.shape[1] - 1
    if conv_state.ndim != 3 or conv_state.shape[:2] != x.shape or conv_state.shape[2] < past:
        raise ValueError(
            f"`conv_state` must have shape [batch, dim, width − 1] = {[*x.shape, past]} or more "
            f"sites, got {list(conv_state.shape)}; pad it with zeros on the left"
        )
    _check(x[..., None], weight, bias, None, None, activation)
    _check_numbers("conv_state", conv_state)
    seen = torch.cat((conv_state, x[..., None].to(conv_state.dtype)), dim=2)
    out = (seen[:, :, -past - 1 :] * weight).sum(dim=2)
    out = (out if bias is None else out + bias).to(x.dtype)
    conv_state.copy_(seen[:, :, 1:])
    return out if activation is None else F.silu(out)


def _check(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    seq_idx: Tensor | None,
    initial_states: Tensor | None,
    activation: str | None,
) -> None:
    check_tensor("x", x)
    given = {"x": x, "weight": weight, "bias": bias, "initial_states": initial_states}
    for name, each in given.items():
        if each is not None:
            _check_numbers(name, check_tensor(name, each, x if name != "x" else None))
    if x.ndim != 3 or weight.ndim != 2 or weight.shape[0] != x.shape[1] or weight.shape[1] == 0:
        raise ValueError(
            "`x` must be [batch, dim, length] and `weight` [dim, width] of the same dim, got "
            f"{list(x.shape)} and {list(weight.shape)}; transpose a field [batch, length, dim]"
        )
    batch, dim, length = x.shape
    if activation is not None:
        check_name("activation", activation, ("silu", "swish"))
    if bias is not None and tuple(bias.shape) != (dim,):
        raise ValueError(f"`bias` must have shape [dim] = [{dim}], got {list(bias.shape)}")
    if seq_idx is not None:
        check_tensor("seq_idx", seq_idx, x)
    if seq_idx is not None and tuple(seq_idx.shape) != (batch, length):
        raise ValueError(
            f"`seq_idx` must have shape [batch, length] = {[batch, length]}, "
            f"got {list(seq_idx.shape)}"
        )
    wanted = (batch, dim, weight.shape[1] - 1)
    if initial_states is not None and tuple(initial_states.shape) != wanted:
        raise ValueError(
            f"`initial_states` must have shape [batch, dim, width − 1] = {list(wanted)}, "
            f"got {list(initial_states.shape)}"
        )


def _check_numbers(name: str, value: Tensor) -> None:
    if not value.is_floating_point() or value.element_size() == 1:
        raise ValueError(
            f"`{name}` must hold floating-point numbers of 16 bits or more, got {value.dtype}; "
            "use .float()"
        )


def _numbered(x: Tensor, seq_idx: Tensor | None, cu_seqlens: Tensor) -> Tensor:
    """Give every site the number of its packed sequence."""
    if seq_idx is not None or x.shape[0] != 1:
        raise ValueError(
            "`cu_seqlens` must stand for `seq_idx` in a batch of one, got "
            f"{'both' if seq_idx is not None else f'a batch of {x.shape[0]}'}; use seq_idx"
        )
    return segments_of(cu_seqlens, x.mT)
