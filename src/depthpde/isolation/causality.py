"""Does a future token change the past? The audit's first question alone, of any field.

    u_j changed for j ≥ t     ⇒     no output at i < t may move

Works on any model: nothing is known of its family. Where the output's past moves, the modules are
followed to the innermost whose inputs agree and whose outputs do not. Layers that are still the
identity are moved away from it for the trial: at the identity nothing could be seen to leak.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from depthpde.errors import check_positive, check_range, check_whole
from depthpde.insertion.calling import arguments, check_batch, check_has_weights
from depthpde.insertion.compiled import check_not_compiled
from depthpde.insertion.hooks.container import PREFIX
from depthpde.insertion.moved import moved_weights
from depthpde.isolation.batch import (
    WITHOUT_SITES,
    CallBatch,
    Key,
    Sequence,
    by_name,
    ordinary_tokens,
)
from depthpde.isolation.question import Move, examine, examine_inside
from depthpde.isolation.questions.future import change_from
from depthpde.isolation.subject import AuditSubject, opened
from depthpde.isolation.trial import Trial, kept_parts

FIRST = ("decoder_input_ids", "input_ids", "inputs_embeds")
"""Arguments that are changed before any other."""


@dataclass(frozen=True, slots=True)
class Leak:
    """Where the future comes in."""

    module: str
    """The innermost module whose inputs agree in the past and whose outputs do not."""
    kind: str
    """Its class."""
    changed_from: int
    """The first site that was changed."""
    reached: int
    """The earliest site of its output that moved."""
    size: float
    """By how much, at most, the model's output moves, relative to its largest."""


@dataclass(frozen=True, slots=True)
class CausalityReport:
    """What was compared, and the leak if there is one."""

    leak: Leak | None
    length: int
    cuts: tuple[int, ...]
    """The sites from which on the input was changed, one trial each."""
    modules: int
    """How many modules ran, through any of which the future could have come in."""
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
        over = f"{len(self.cuts)} trials over {self.length} sites, {self.modules} modules"
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
    tolerance: float = 0.0,
    trials: int = 5,
    seed: int = 0,
) -> CausalityReport:
    """Change the future of an input and compare the past of the output.

    The model runs in eval mode without gradients and is left as it was. What moves is run again in
    float64: rounding vanishes, a leak stays. A layer whose ratio is 0 takes part with half its
    bound, and every other inserted weight is moved too, so that a leak is found before the first
    update and not after it.

    >>> model = torch.nn.TransformerEncoderLayer(32, 4, batch_first=True)
    >>> dp.check_causality(model, torch.randn(2, 10, 32)).leaks
    True

    Args:
        model: Any module.
        inputs: One tensor, or the positional or named arguments of the model. The first tensor of
            tokens [batch, length] or of a field [batch, length, dim] is changed; the decoder's
            where there is an encoder beside it.
        length_axis: Where the sites are in that tensor.
        vocabulary: Number of token ids; by default that of the model's smallest embedding that
            holds all that came.
        tolerance: How far the past may move, relative to the largest output; 0 allows rounding
            alone, which is told by float64.
        trials: At how many sites the change begins, at most; each costs a call.
        seed: Of the random change.
    """
    check_positive("trials", trials)
    check_whole("length_axis", length_axis)
    check_whole("seed", seed)
    if vocabulary is not None:
        check_positive("vocabulary", vocabulary)
    check_range("tolerance", tolerance, 0.0, 1e30)
    check_not_compiled(model, "its causality is checked")
    check_has_weights(model, "its causality is checked")
    args, named = arguments(inputs, name="inputs")
    check_batch(model, (*args, *named.values()), name="inputs")
    batch = _read(model, inputs, length_axis, vocabulary)
    sequence = batch.sequences[0]
    cuts = _cuts(sequence.length, trials)
    leak = None
    with opened(model, batch, causal=True, name="inputs") as subject:
        _check_repeatable(subject)
        blind = subject.blind_call() is not None
        for cut in cuts:
            trial = change_from(cut, batch, sequence, subject.plain, seed=seed)
            move = (
                examine_inside(subject, trial)
                if blind
                else examine(subject, trial, tolerance=tolerance)
            )
            if move is None:
                _refuse_without_sites(sequence)
            elif move.source is not None:
                leak = _leak(subject, trial, move, cut)
                break
        if leak is None:
            subject.check_numbers()
    moved = {name.rpartition(".")[0] for name in moved_weights(model, inside=PREFIX)}
    return CausalityReport(leak, sequence.length, cuts, len(list(model.modules())), len(moved))


def _cuts(length: int, trials: int) -> tuple[int, ...]:
    """Choose the sites from which on the input is changed; the middle if it is only one."""
    cuts = sorted({1, length // 4, length // 2, 3 * length // 4, length - 1} - {0})
    step = len(cuts) / min(trials, len(cuts))
    return tuple(cuts[math.ceil((k + 0.5) * step) - 1] for k in range(min(trials, len(cuts))))


def _leak(subject: AuditSubject, trial: Trial, move: Move, cut: int) -> Leak:
    """Describe a leak; where it comes in, find the earliest site that it reaches."""
    source, changed = move.source, move.changed
    assert source is not None
    assert changed is not None
    # without a name it is the model itself, which may run in no other precision than its own
    layouts = subject.layouts(trial.sequence, traced=bool(source.name))
    reached = [cut - 1]
    for k, (old, new) in enumerate(zip(source.outputs, changed.outputs, strict=False)):
        for layout in layouts.get((source.name, source.number, "out", k), ())[:1]:
            parts = kept_parts(trial, layout, old, new)
            if parts is not None:
                apart = (parts[0] != parts[1]) & ~(parts[0].isnan() & parts[1].isnan())
                sites = apart.movedim(1, 0).flatten(1).any(dim=1).nonzero()
                reached += sites[:1, 0].tolist()
    return Leak(source.name or "(model)", source.kind, cut, min(reached), move.size)


def _read(model: nn.Module, inputs: Any, length_axis: int, vocabulary: int | None) -> CallBatch:
    """Read the inputs as a batch whose one sequence is the tensor that is changed."""
    values, accepts = by_name(model, inputs)
    key, given = _changeable(values, length_axis)
    if vocabulary is not None and vocabulary < 2:
        raise ValueError(f"`vocabulary` must be at least 2 to change a token, got {vocabulary}")
    tokens = (
        ordinary_tokens(model, {key: given}) if vocabulary is None else tuple(range(vocabulary))
    )
    field = given.movedim(length_axis, 1)
    return CallBatch(
        values={**values, key: field},
        key=key,
        rows=field.shape[0],
        sequences=(Sequence(key=key, length=field.shape[1], mask=None),),
        accepts=accepts,
        tokens=tokens,
        length_axis=length_axis,
    )


def _changeable(values: Mapping[Key, Any], length_axis: int) -> tuple[Key, Tensor]:
    ordered = sorted(values, key=lambda key: FIRST.index(key) if key in FIRST else len(FIRST))
    for key in ordered:
        value = values[key]
        if key in WITHOUT_SITES or not isinstance(value, Tensor) or value.dtype == torch.bool:
            continue
        if value.ndim > max(length_axis, 1):
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


def _refuse_without_sites(sequence: Sequence) -> None:
    raise ValueError(
        f"`model` must give some output with an axis of {sequence.length} sites, got none; "
        "pass the part that comes before pooling, or the right `length_axis`"
    )


def _check_repeatable(subject: AuditSubject) -> None:
    call = subject.random_call()
    if call is not None:
        raise ValueError(
            "`model` must give the same output twice in eval mode, got two different ones from "
            f"{call.name or '(model)'} ({call.kind}); switch its randomness off"
        )
