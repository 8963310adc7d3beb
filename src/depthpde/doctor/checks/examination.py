"""Examination: everything that is tried beside the one pass, added to its profile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from torch import Tensor, nn

from depthpde.doctor.activations import fast_paths_off
from depthpde.doctor.checks.activation import activation_facts
from depthpde.doctor.checks.attention_change import explain_alone
from depthpde.doctor.checks.departure import compare
from depthpde.doctor.checks.inspection import inspect_learning, inspect_weights
from depthpde.doctor.checks.operations import operation_facts
from depthpde.doctor.checks.order import order_facts
from depthpde.doctor.checks.own_class import class_departure, made_anew
from depthpde.doctor.checks.proportions import proportion_facts
from depthpde.doctor.checks.start import start_facts
from depthpde.doctor.depth_profile import DepthProfile
from depthpde.doctor.large import ROWS, TOLERANCE, is_large, shorter
from depthpde.doctor.model_map import model_map
from depthpde.doctor.single_modules import first_not_finite
from depthpde.insertion.calling import arguments, quiet
from depthpde.insertion.family import Family
from depthpde.insertion.recorder import argument_names
from depthpde.isolation.answer import Isolation, sentence
from depthpde.isolation.audit import audit

QUESTIONS = ("cache", "memory")


def examine(
    profile: DepthProfile,
    model: nn.Module,
    batch: Any,
    *,
    family: Family | None = None,
    stack: str | None = None,
    reference: nn.Module | None = None,
    checks: bool = True,
    isolation: bool = True,
) -> DepthProfile:
    """Inspect the weights and try a few more passes; return the profile with what they show.

    Args:
        profile: Of the one pass.
        model: The model.
        batch: What it was called with.
        family: The description of a family that is not known.
        stack: The module that holds the blocks, where there are several.
        reference: A healthy model of the same modules.
        checks: Whether to do more than compare with the reference.
        isolation: Whether to try padding, cache and modes, and to compare with the model's class:
            what no design explains.
    """
    args, named = arguments(batch)
    named = {name: each for name, each in named.items() if name != "labels"}
    by_name = dict(zip(argument_names(model), args, strict=False)) | named
    body = model_map(model, family, stack=stack, batch=by_name)
    facts, missing = dict(profile.facts), dict(profile.missing)
    finite = "not_finite" not in facts
    undo = fast_paths_off()
    try:
        with quiet(model):
            if reference is not None:
                facts["reference"] = compare(body, reference, args, named)
            if checks:
                facts["weights"] = inspect_weights(body)
                facts["frozen"] = inspect_learning(body)
                if not finite:
                    _try(missing, "modules", lambda: facts.update(
                        not_finite_module=first_not_finite(body, args, named)))  # fmt: skip
                if finite and "attention" in missing and body.query_key is not None:
                    _try(missing, "scores", lambda: facts.update(
                        otherwise=explain_alone(body, args, named)))  # fmt: skip
                width = facts.get("logits", {}).get("width")
                _try(missing, "proportions", lambda: facts.update(proportion_facts(body, width)))
                again = made_anew(model)
                if again is not None:
                    _try(missing, "start", lambda: facts.update(start=start_facts(body, again)))
                if finite:
                    few, some = _few_rows(model, args, named)
                    _try(missing, "order", lambda: facts.update(order_facts(body, args, named)))
                    _try(
                        missing,
                        "operations",
                        lambda: facts.update(operation_facts(body, few, some)),
                    )
                    _try(missing, "activation", lambda: facts.update(
                        activation=activation_facts(body, few, some)))  # fmt: skip
                    if again is not None and isolation:  # the last: it takes the model's weights
                        _try(missing, "class", lambda: facts.update(
                            own_class=class_departure(body, again, args, named)))  # fmt: skip
        if checks and isolation and finite and facts.get("repeats") is not False:
            _try(missing, "isolation", lambda: _isolation(facts, model, args, named))
    finally:
        undo()
    return replace(profile, facts=facts, missing=missing)


def _isolation(
    facts: dict[str, Any], model: nn.Module, args: tuple[Any, ...], named: dict[str, Any]
) -> None:
    """Ask whether padding, a cache or the mode changes what it must not, of a few short rows."""
    few, some = _few_rows(model, args, named)
    batch = some if some and not few else few
    tolerance = TOLERANCE if is_large(model) else 0.0
    report = audit(model, batch, questions=QUESTIONS, tolerance=tolerance)
    facts["isolation"] = {
        each.name: {
            "verdict": each.verdict.value,
            "size": each.size,
            "module": each.module,
            "text": sentence(each) if each.verdict is Isolation.LEAK else each.detail,
        }
        for each in report.answers
    }


def _few_rows(
    model: nn.Module, args: tuple[Any, ...], named: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Give a call with a few rows of its batch; of a few sites, if the model is large."""
    size = next((each.shape[0] for each in (*args, *named.values()) if _is_field(each)), 0)
    cut = partial(_cut, size, shorter if is_large(model) else None)
    return tuple(map(cut, args)), {name: cut(each) for name, each in named.items()}


def _cut(batch: int, shorten: Callable[[Any], Any] | None, value: Any) -> Any:
    few = value[:ROWS] if _is_field(value) and value.shape[0] == batch else value
    return few if shorten is None else shorten(few)


def _is_field(value: Any) -> bool:
    return isinstance(value, Tensor) and value.ndim > 1


def _try(missing: dict[str, str], name: str, check: Callable[[], None]) -> None:
    try:
        check()
    except Exception as error:  # no model that nobody thought of ends a diagnosis
        missing[name] = next(iter(str(error).splitlines()), type(error).__name__)
