"""Design: what a new model of the same class shows too is how the class is made.

    ill here, healthy in a new model of the class     happened to this model
    ill here, and not healthy there                   its design: worth watching, not ill

A library's class (weights that begin at zero, another scale of the scores, a norm with a large ε)
is meant so; a class of the caller's own may itself be what is wrong, and is not excused. What must
hold for every model (no leak, a cache that agrees, numbers that are finite) has no such excuse.
"""

from __future__ import annotations

from torch import nn

from depthpde.doctor.checks.examination import examine
from depthpde.doctor.checks.own_class import is_of_a_library, made_anew
from depthpde.doctor.conditions.condition import Condition, Symptom
from depthpde.doctor.conditions.table import symptoms
from depthpde.doctor.probe import Batch, probe
from depthpde.insertion.calling import arguments

NO_EXCUSE = frozenset({
    Condition.NOT_FINITE, Condition.LEAK, Condition.PADDING, Condition.CACHE, Condition.MODES,
    Condition.UNREPEATABLE, Condition.CODE, Condition.WEIGHTS, Condition.OWN_CLASS,
    Condition.UNMOVED, Condition.UPDATES,
})  # fmt: skip
"""What no design may do, and what only happens to one model."""


def design_symptoms(
    model: nn.Module, batch: Batch, *, stack: str | None, entropy_floor: float
) -> dict[str, Symptom]:
    """Return what a new model of the same class of a library shows; empty where none is made.

    Args:
        model: The model.
        batch: What it is called with.
        stack: The module that holds the blocks, where there are several.
        entropy_floor: Share of log n under which a head looks at one token.
    """
    fresh = made_anew(model) if is_of_a_library(model) else None
    if fresh is None:
        return {}
    args, named = arguments(batch)
    call: Batch = args or {name: each for name, each in named.items() if name != "labels"}
    try:
        profile = probe(fresh, call, stack=stack, baseline=False, causality=False, modules=True)
        whole = examine(profile, fresh, call, stack=stack, isolation=False)
    except ValueError:  # a new model that cannot be measured excuses nothing
        return {}
    found = symptoms(whole, entropy_floor=entropy_floor)
    return {
        name: each
        for name, each in found.items()
        if isinstance(each, Symptom) and name not in NO_EXCUSE
    }
