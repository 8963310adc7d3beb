"""Design: findings that a new model of the same class shows too are how the class is made.

    ill here, healthy in a new model of the class     happened to this model
    ill here, and not healthy there                   its design: worth watching, not ill

A library's class (weights that begin at zero, another scale of the scores, a norm with a large ε)
is meant so; a class of the caller's own may itself be what is wrong, and is not excused. What must
hold for every model (no leak, a cache that agrees, numbers that are finite) has no such excuse.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from torch import nn

from depthpde.doctor.checks.examination import examine
from depthpde.doctor.checks.own_class import is_of_a_library, made_anew
from depthpde.doctor.conditions.condition import Condition, Symptom
from depthpde.doctor.conditions.table import symptoms
from depthpde.doctor.probe import Batch, probe
from depthpde.doctor.thresholds import Grade
from depthpde.doctor.verdict import HealthVerdict
from depthpde.insertion.calling import arguments

NO_EXCUSE = frozenset({
    Condition.NOT_FINITE, Condition.LEAK, Condition.PADDING, Condition.CACHE, Condition.MODES,
    Condition.UNREPEATABLE, Condition.CODE, Condition.WEIGHTS, Condition.OWN_CLASS,
    Condition.UNMOVED, Condition.UPDATES,
})  # fmt: skip
"""What no design may do, and what only happens to one model."""


def excuse_design(
    verdicts: Sequence[HealthVerdict],
    model: nn.Module,
    batch: Batch,
    *,
    stack: str | None = None,
    entropy_floor: float,
) -> list[HealthVerdict]:
    """Grade what a library's class is made like as worth watching; other verdicts stay.

    Args:
        verdicts: Of the model.
        model: The model.
        batch: What it was called with.
        stack: The module that holds the blocks, where there are several.
        entropy_floor: Share of log n under which a head looks at one token.
    """
    doubtful = [
        each for each in verdicts if each.grade is Grade.ILL and each.condition not in NO_EXCUSE
    ]
    fresh = made_anew(model) if doubtful and is_of_a_library(model) else None
    if fresh is None:
        return list(verdicts)
    args, named = arguments(batch)
    call: Batch = args or {name: each for name, each in named.items() if name != "labels"}
    try:
        profile = probe(fresh, call, stack=stack, baseline=False, causality=False)
        whole = examine(profile, fresh, call, stack=stack, isolation=False)
        there = symptoms(whole, entropy_floor=entropy_floor)
    except ValueError:  # a new model that cannot be measured excuses nothing
        return list(verdicts)
    return [
        replace(each, grade=Grade.WATCH, by_design=True)
        if each in doubtful and _shares(each, there.get(each.condition))
        else each
        for each in verdicts
    ]


def _shares(verdict: HealthVerdict, there: object) -> bool:
    """Tell whether a new model shows what was found, in the same matrix where it is one."""
    if not isinstance(there, Symptom):
        return False
    if verdict.condition == Condition.EMPTY_WEIGHTS and there.where != verdict.symptom.where:
        return False
    return verdict.threshold.grade(there.value) is not Grade.HEALTHY
