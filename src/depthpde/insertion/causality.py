"""Does a future token change the past? And through which module?

    u_j changed for j ≥ t     ⇒     no output at i < t may move

Works on any model: nothing is known of its family. Every module's output is compared in order of
execution, so the first one whose past moves is where the future comes in. Layers that are still
the identity are moved away from it for the trial: at the identity nothing could be seen to leak.

Which axis of an output counts the sites is found by a shorter run: it is the one that shrinks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from depthpde import seeds
from depthpde.errors import check_positive
from depthpde.insertion.calling import (
    arguments,
    call_model,
    check_batch,
    check_has_weights,
    quiet,
)
from depthpde.insertion.compiled import check_not_compiled
from depthpde.insertion.hooks.container import PREFIX
from depthpde.insertion.moved import moved_weights
from depthpde.insertion.record import Key, Output, recording
from depthpde.insertion.site_axis import find_site_axes, shortened

TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5}
COARSE_TOLERANCE = 1e-2
"""Of 16-bit formats; all relative to the largest output of the module."""


@dataclass(frozen=True, slots=True)
class Leak:
    """Where the future comes in."""

    module: str
    """The first module whose output moves in the past."""
    kind: str
    """Its class."""
    changed_from: int
    """The first site that was changed."""
    reached: int
    """The earliest site that moved."""
    size: float
    """By how much, at most, relative to the module's largest output."""


@dataclass(frozen=True, slots=True)
class CausalityReport:
    """What was compared, and the leak if there is one."""

    leak: Leak | None
    length: int
    cuts: tuple[int, ...]
    """The sites from which on the input was changed, one trial each."""
    modules: int
    """How many outputs were compared in each trial."""
    moved: int = 0
    """How many layers were moved away from the identity for the trial."""

    @property
    def leaks(self) -> bool:
        """Whether the future changes the past."""
        return self.leak is not None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {"leaks": self.leaks, **asdict(self)}

    def __str__(self) -> str:
        """Say the verdict in one line."""
        over = f"{len(self.cuts)} trials over {self.length} sites, {self.modules} outputs compared"
        if self.moved:
            over += f", {self.moved} layers moved away from the identity"
        if self.leak is None:
            return f"causal: no site sees its future ({over})"
        leak = self.leak
        return (
            f"the future leaks through {leak.module} ({leak.kind}): changing sites from "
            f"{leak.changed_from} on moves site {leak.reached} by {leak.size:.2g} ({over})"
        )


def check_causality(
    model: nn.Module,
    inputs: Tensor | tuple[Any, ...] | Mapping[str, Any],
    *,
    length_axis: int = 1,
    vocabulary: int | None = None,
    tolerance: float | None = None,
    trials: int = 5,
    seed: int = 0,
) -> CausalityReport:
    """Change the future of an input and compare the past of every output.

    The model runs in eval mode without gradients and is left as it was. A layer whose ratio is 0
    takes part with half its bound, and every other inserted weight is moved too, so that a leak
    is found before the first update and not after it.

    >>> model = torch.nn.TransformerEncoderLayer(32, 4, batch_first=True)
    >>> dp.check_causality(model, torch.randn(2, 10, 32)).leaks
    True

    Args:
        model: Any module.
        inputs: One tensor, or the positional or named arguments of the model. The first tensor of
            tokens [batch, length] or of a field [batch, length, dim] is changed.
        length_axis: Where the sites are in that tensor.
        vocabulary: Number of token ids; by default that of the model's first embedding.
        tolerance: How far, relative to the largest output, the past may move by rounding.
        trials: At how many sites the change begins, at most; each costs a call.
        seed: Of the random change.
    """
    check_positive("trials", trials)
    check_not_compiled(model, "its causality is checked")
    check_has_weights(model, "its causality is checked")
    args, named = arguments(inputs, name="inputs")
    check_batch(model, (*args, *named.values()), name="inputs")
    key, given = _changeable(args, named, length_axis)
    length = given.shape[length_axis]
    cuts = _cuts(length, trials)
    if given.is_floating_point():
        other = _other_field(given, seed)
    else:
        other = _other_tokens(given, vocabulary or _vocabulary(model, given), seed)
    leak = None
    weights = moved_weights(model, inside=PREFIX)
    with quiet(model), recording(model) as record:

        def outputs(args: tuple[Any, ...], named: dict[str, Any]) -> dict[Key, Output]:
            record.take()  # what a call that failed has left
            call_model(model, args, named, weights=weights, name="inputs")
            return record.take()

        def shorter() -> dict[Key, Output] | None:
            for each in shortened(args, named, key, length_axis, length):
                with suppress(ValueError):
                    return outputs(*each)
            return None

        before = outputs(args, named)
        _check_repeatable(before, outputs(args, named))
        comparable = find_site_axes(before, length, shorter)
        future = torch.arange(length, device=given.device)
        for cut in cuts:
            shape = [1] * given.ndim
            shape[length_axis] = length
            changed = torch.where((future >= cut).view(shape), other, given)
            after = outputs(*_with(args, named, key, changed))
            leak = _first_leak(comparable, after, cut, tolerance)
            if leak is not None:
                break
    if leak is None:
        _check_seen(comparable)
    return CausalityReport(leak, length, cuts, len(comparable), _owners(weights))


def _cuts(length: int, trials: int) -> tuple[int, ...]:
    """Choose the sites from which on the input is changed; the middle if it is only one."""
    cuts = sorted({1, length // 4, length // 2, 3 * length // 4, length - 1} - {0})
    step = len(cuts) / min(trials, len(cuts))
    return tuple(cuts[math.ceil((k + 0.5) * step) - 1] for k in range(min(trials, len(cuts))))


def _owners(weights: dict[str, Tensor]) -> int:
    """Count the layers that some weights belong to."""
    return len({name.rpartition(".")[0] for name in weights})


def _first_leak(
    before: dict[Key, Output], after: dict[Key, Output], cut: int, tolerance: float | None
) -> Leak | None:
    """Find the first module whose past moved, if it reaches the model's own output.

    What is no number cannot be seen to move: behind such an output every module's past counts.
    """
    leaks = {}
    for key, output in before.items():
        if key in after and after[key].tensor.shape == output.tensor.shape:
            leak = _compare(output, after[key].tensor, cut, tolerance)
            if leak is not None:
                leaks[key] = leak
    own = [key for key in before if key[0] == ""]
    seen = not any(_is_blind(before[key]) for key in own)
    if own and seen and not any(key in leaks for key in own):
        return None
    return next(iter(leaks.values()), None)


def _check_seen(outputs: dict[Key, Output]) -> None:
    """Refuse to call a model causal whose own output holds no number."""
    own = [output for key, output in outputs.items() if key[0] == ""] or list(outputs.values())
    if any(_is_blind(output) for output in own):
        first = next(output for output in outputs.values() if _is_blind(output))
        raise ValueError(
            "`model` must give numbers for its causality to be told, got NaN at every feature of a "
            f"site from {first.module} ({first.kind}) on; mend its weights, or check a part of it"
        )


def _is_blind(output: Output) -> bool:
    """Tell whether some site holds no number at all: it cannot be seen to move."""
    by_site = output.tensor.isnan().movedim(output.axes[0], 0).flatten(1)
    return bool(by_site.all(dim=1).any()) and by_site.numel() > 0


def _compare(output: Output, after: Tensor, cut: int, tolerance: float | None) -> Leak | None:
    """Find the past that moved, along every axis that may be the sites'."""
    leaks = [_moved_along(axis, output, after, cut, tolerance) for axis in output.axes]
    return leaks[0] if all(leaks) else None


def _moved_along(
    axis: int, output: Output, after: Tensor, cut: int, tolerance: float | None
) -> Leak | None:
    old = output.tensor.narrow(axis, 0, cut).double()
    new = after.narrow(axis, 0, cut).double()
    same = (old == new) | (old.isnan() & new.isnan())
    moved = torch.nan_to_num((new - old).abs().masked_fill(same, 0.0), nan=torch.inf)
    if moved.numel() == 0:
        return None
    finite = torch.where(output.tensor.isfinite(), output.tensor, 0.0).double()
    by_site = (moved / finite.abs().max().clamp(min=1e-12)).movedim(axis, 0)
    by_site = by_site.flatten(1).amax(dim=1)
    allowed = TOLERANCE.get(after.dtype, COARSE_TOLERANCE) if tolerance is None else tolerance
    reached = torch.nonzero(by_site > allowed)
    if len(reached) == 0:
        return None
    return Leak(output.module, output.kind, cut, int(reached[0]), float(by_site.max()))


def _with(
    args: tuple[Any, ...], named: dict[str, Any], key: int | str, tensor: Tensor
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Put another tensor in the place of the input."""
    if isinstance(key, int):
        return (*args[:key], tensor, *args[key + 1 :]), named
    return args, {**named, key: tensor}


def _check_repeatable(first: dict[Key, Output], second: dict[Key, Output]) -> None:
    for key, output in first.items():
        if key in second and not torch.equal(
            torch.nan_to_num(output.tensor), torch.nan_to_num(second[key].tensor)
        ):
            raise ValueError(
                f"`model` must give the same output twice in eval mode, got two different ones "
                f"from {output.module} ({output.kind}); switch its randomness or its state off"
            )


def _changeable(
    args: tuple[Any, ...], named: dict[str, Any], length_axis: int
) -> tuple[int | str, Tensor]:
    first = ("input_ids", "inputs_embeds")
    ordered = sorted(named.items(), key=lambda pair: pair[0] not in first)
    candidates: list[tuple[int | str, Any]] = [*enumerate(args), *ordered]
    for key, value in candidates:
        if isinstance(value, Tensor) and value.ndim > length_axis and value.dtype != torch.bool:
            if value.shape[length_axis] < 2:
                raise ValueError(
                    f"`inputs` must have at least 2 sites on axis {length_axis}, "
                    f"got {list(value.shape)}"
                )
            return key, value
    raise ValueError(
        "`inputs` must hold tokens [batch, length] or a field [batch, length, dim], got none with "
        f"an axis {length_axis}"
    )


def _vocabulary(model: nn.Module, tokens: Tensor) -> int:
    """Find how many tokens may safely be used: the smallest table that holds all that came."""
    least = int(tokens.max()) + 1
    tables = (each.num_embeddings for each in model.modules() if isinstance(each, nn.Embedding))
    return min((size for size in tables if size >= least), default=least)


def _other_tokens(tokens: Tensor, vocabulary: int, seed: int) -> Tensor:
    """Replace every token by another one."""
    if vocabulary < 2:
        raise ValueError(f"`vocabulary` must be at least 2 to change a token, got {vocabulary}")
    draw = seeds.generator(seed, "causality")
    shift = torch.randint(1, vocabulary, tokens.shape, generator=draw)
    return (tokens + shift.to(tokens)) % vocabulary


def _other_field(u: Tensor, seed: int) -> Tensor:
    noise = torch.randn(u.shape, generator=seeds.generator(seed, "causality"))
    return u + (1 + noise.to(u))
