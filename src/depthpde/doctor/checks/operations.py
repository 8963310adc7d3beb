"""Operations: what single operations of torch show: the block's sum, low precision, dropout.

    u_l − u_{l−1} − A_l − F_l = 0        in a block with its norms before the terms
    u_l = LN(…)                          in a block with its norms after them
    dropout of attention                 on weights, at the rate that the module declares
    dropout of the stream                on the terms, not on their sum: no exact zeros in it
    formats                              none with fewer digits than the weights have

One pass in eval mode and one in train mode, of a few rows; torch says which operations ran.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.linalg import vector_norm
from torch.utils._python_dispatch import TorchDispatchMode

from depthpde.doctor.activations import Activations, watching
from depthpde.doctor.checks.components import attention_root
from depthpde.doctor.model_map import ModelMap
from depthpde.insertion.calling import call_model
from depthpde.insertion.family import NormOrder, out_of
from depthpde.insertion.layout import FieldLayout
from depthpde.insertion.recorder import Given, Recorder
from depthpde.measures.energy import diffusion_layers

LOW = (torch.float16, torch.bfloat16)
CLOSE = 1e-5
"""Rates of dropout that differ by less are one."""
STREAM_ZEROS = 0.02
"""Share of exact zeros in the stream of train mode from which on it is dropout."""
KERNEL = "scaled_dot_product"


class _Operations(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Hands over every operation with its arguments and its result."""

    def __init__(self, see: Callable[[str, tuple[Any, ...], Any], None]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.see = see

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        self.see(func.overloadpacket.__name__, args, out)
        return out


def operation_facts(body: ModelMap, args: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    """Return what the operations of one pass in eval and one in train mode show.

    Args:
        body: The model.
        args: Its positional arguments, a few rows of them.
        named: Its named arguments.
    """
    facts: dict[str, Any] = {}
    low: list[dict[str, str]] = []
    wide = all(
        each.dtype not in LOW for each in body.model.parameters() if each.is_floating_point()
    )
    ends: dict[int, Tensor] = {}
    with (
        torch.no_grad(),
        _in_attention(body, ends) as where,
        watching(body, inside=False) as activations,
        _Operations(partial(_note_low, low, where)),
    ):
        call_model(body.model, args, named)
    facts["sum"] = _sums(body, activations, ends)
    if wide and not torch.is_autocast_enabled("cpu"):
        facts["low_precision"] = next((each for each in low if each["component"] == "kernel"),
                                      next(iter(low), None))  # fmt: skip
    facts["dropout"] = _dropout(body, args, named)
    return facts


@contextmanager
def _in_attention(body: ModelMap, ends: dict[int, Tensor] | None = None) -> Iterator[list[int]]:
    """Keep the block whose attention runs, as the only entry of a list; empty outside.

    Args:
        body: The model.
        ends: Takes what the last norm of each block gives.
    """
    inside: list[int] = []
    with Recorder() as recorder:
        for k, block in enumerate(body.blocks):
            module = _part(block.parts, attention_root(body))
            if module is not None:
                recorder.on_call(module, partial(_enter, inside, k))
                recorder.on_output(module, lambda out: inside.clear())
            last = _part(block.parts, body.family.norms[-1]) if body.family.norms else None
            if ends is not None and last is not None:
                tap = out_of(body.family.norms[-1])
                keep = partial(_keep_field, ends, k, body.layout(k))
                recorder.on_tap(block.parts, tap, keep, body.turn(k))
        yield inside


def _enter(inside: list[int], k: int, given: Given) -> None:
    inside.append(k)


def _keep_field(ends: dict[int, Tensor], k: int, layout: FieldLayout, u: Tensor) -> None:
    ends[k] = layout.field(u).detach().clone()


def _note_low(
    low: list[dict[str, str]], where: list[int], name: str, args: tuple[Any, ...], out: Any
) -> None:
    """Note an operation whose result has fewer digits than float32."""
    first = out[0] if isinstance(out, tuple) and out else out
    if isinstance(first, Tensor) and first.dtype in LOW:
        part = "kernel" if KERNEL in name or "bmm" in name else "score"
        place = f"block {where[0] + 1}" if where else "the model"
        low.append({"operation": name, "format": str(first.dtype).removeprefix("torch."),
                    "where": place, "component": part if where else ""})  # fmt: skip


def _sums(
    body: ModelMap, activations: Activations, ends: dict[int, Tensor]
) -> dict[str, Any] | None:
    """Find the block that hands on something else than its input and its terms, or its norm."""
    if body.family.traced or diffusion_layers(body.model):
        return None
    found = []
    for k, block in enumerate(body.blocks):
        after = activations.stream[k + 1].double()
        if _norm_order(body, block.parts) == NormOrder.POST:
            if k not in ends or ends[k].shape != after.shape:
                return None
            found.append((_apart(after, ends[k].double()), k, 1.0))
            continue
        terms = [each.get(k) for each in (activations.interaction, activations.reaction)]
        if any(each is None or each.shape != after.shape for each in terms):
            return None
        # a term that adds nothing has no scale to be found
        columns = [
            activations.stream[k],
            *(each for each in terms if each is not None and each.any()),
        ]
        basis = torch.stack([each.double().flatten() for each in columns], dim=1)
        scales = torch.linalg.lstsq(basis, after.flatten()[:, None]).solution[:, 0]
        gap = _apart(after, (basis @ scales).view_as(after))
        found.append((max(gap, abs(float(scales[0]) - 1.0)), k, float(scales[0])))
    gap, k, times = max(found, key=lambda each: each[0])
    return {"gap": gap, "where": f"block {k + 1}", "times": times}


def _norm_order(body: ModelMap, block: nn.Module) -> str:
    """Tell where a block normalizes; our own blocks say it themselves."""
    return str(getattr(block, "norm", "") if body.encoder is not None else body.family.norm)


def _apart(u: Tensor, v: Tensor) -> float:
    return float(vector_norm(u - v) / vector_norm(v).clamp_min(1e-30))


def _dropout(body: ModelMap, args: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    """Find dropout that stands where none belongs, or has another rate than is declared."""
    declared = {
        k: _declared(_part(block.parts, attention_root(body)))
        for k, block in enumerate(body.blocks)
    }
    found: list[dict[str, Any]] = []
    modes = [(each, each.training) for each in body.model.modules()]
    body.model.train()
    try:
        with torch.random.fork_rng(devices=[]), torch.no_grad(), _in_attention(body) as where:
            see = partial(_note_dropout, found, declared, where, {})
            with watching(body, inside=False) as activations, _Operations(see):
                call_model(body.model, args, named)
    finally:
        for each, mode in modes:
            each.training = mode
    depths = range(min(2, len(body.blocks)), len(body.blocks) + 1)
    zeros = {k: float((activations.stream[k] == 0).float().mean()) for k in depths}
    worst = max(zeros, key=zeros.__getitem__)
    if zeros[worst] > STREAM_ZEROS:
        text = f"{zeros[worst]:.0%} of the stream itself is dropped in train mode"
        found.append(_said(zeros[worst], f"block {worst}", "residual", text))
    return max(found, key=lambda each: each["size"], default=_said(0.0, "", "", ""))


def _part(block: nn.Module, path: str) -> nn.Module | None:
    try:
        return block.get_submodule(path)
    except AttributeError:
        return None


def _declared(attention: nn.Module | None) -> list[float]:
    """List the rates of dropout that a module and its parts declare."""
    rates = [0.0]
    for module in () if attention is None else attention.modules():
        rates += [module.p] if isinstance(module, nn.Dropout) else []
        rates += [
            float(value)
            for name, value in vars(module).items()
            if "drop" in name and isinstance(value, int | float)
        ]
    return rates


def _note_dropout(
    found: list[dict[str, Any]], declared: dict[int, list[float]], where: list[int],
    noises: dict[int, tuple[Tensor, float]], name: str, args: tuple[Any, ...], out: Any,
) -> None:  # fmt: skip
    """Note dropout in attention: on scores, or at a rate that its module does not declare."""
    if not where:
        return
    if name == "bernoulli_":
        kept = args[1] if len(args) > 1 else 0.5  # torch leaves a default out
        noises[args[0].data_ptr()] = args[0], 1.0 - float(kept)
        return
    rate, mixed = 0.0, None
    if name == "native_dropout":
        mixed, rate = args[0], float(args[1])
    elif name in ("mul", "mul_") and isinstance(args[1], Tensor) and args[1].data_ptr() in noises:
        mixed, (_, rate) = args[0], noises[args[1].data_ptr()]
    if mixed is None or mixed.ndim < 3 or mixed.shape[-1] != mixed.shape[-2]:
        return  # not between pairs of sites
    block, known = f"block {where[0] + 1}", declared[where[0]]
    fourfold = mixed.ndim == 4
    if fourfold and bool((mixed < 0).any()):  # weights are never negative
        text = f"scores are dropped ({rate:.3g}) before the softmax, where 0 is no absence"
        found.append(_said(rate, block, "score", text))
    elif fourfold and all(abs(rate - each) > CLOSE for each in known):
        text = (
            f"{rate:.3g} of the attention weights are dropped, the module declares {max(known):g}"
        )
        found.append(_said(rate, block, "kernel", text))


def _said(size: float, where: str, component: str, text: str) -> dict[str, Any]:
    return {"size": size, "where": where, "component": component, "text": text}
