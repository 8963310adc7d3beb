"""What the plain values of a status and a result must look like, so that others can count."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Check = Callable[[Any], bool]


def is_number(value: Any) -> bool:
    """Return whether a value is a number; True and False are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _optional(check: Check) -> Check:
    return lambda value: value is None or check(value)


def _by_name(check: Check) -> Check:
    return lambda value: isinstance(value, Mapping) and all(check(each) for each in value.values())


def _list_of(check: Check) -> Check:
    return lambda value: isinstance(value, list) and all(check(each) for each in value)


def _numbers(value: Any) -> bool:
    """As `_list_of(is_number)`, at the speed that lists of a thousand ratios need."""
    return isinstance(value, list) and set(map(type, value)) <= {int, float}


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


STATUS: dict[str, tuple[str, Check]] = {
    **dict.fromkeys(("update", "updates", "attempts", "first"), ("a whole number", _count)),
    **dict.fromkeys(("heartbeat", "started"), ("seconds since 1970", is_number)),
    "error": ("a text", _is_text),
    "stage": ("a stage by name", lambda value: isinstance(value, Mapping)),
}
RESULT: dict[str, tuple[str, Check]] = {
    "seconds": ("a number", is_number),
    **dict.fromkeys(("update", "parameters"), ("a whole number", _count)),
    **dict.fromkeys(
        ("tokens", "tokens_per_second", "peak_memory_bytes"), ("a number", _optional(is_number))
    ),
    **dict.fromkeys(("ratios", "weights"), ("lists of numbers by name", _by_name(_numbers))),
    "trivial": ("numbers by name", _by_name(is_number)),
    "validation": ("numbers by name", _optional(_by_name(is_number))),
    "pretraining": ("numbers by name", _optional(_by_name(is_number))),
    "notes": ("a list of texts", _list_of(_is_text)),
}


def misshapen(values: Mapping[str, Any], shape: Mapping[str, tuple[str, Check]]) -> str:
    """Describe which value is not what it must be, best nothing; one that is not there is fine.

    >>> misshapen({"update": "three"}, STATUS)
    "update must be a whole number, got 'three'"
    """
    for name, (wanted, check) in shape.items():
        if name in values and not check(values[name]):
            return f"{name} must be {wanted}, got {str(values[name])[:60]!r}"
    return ""


def miscounted(test: Mapping[str, Any]) -> str:
    """Return whether a test accuracy is not that of its own counts, best nothing.

        | accuracy − 100 · correct / targets |  ≤  50 / targets       correct is a rounded number

    >>> miscounted({"accuracy": 95.65, "correct": 1026, "targets": 4000})
    'a test accuracy must be that of its counts, 25.65 for 1026 of 4000, got 95.65'
    """
    correct: Any = test.get("correct")
    targets: Any = test.get("targets")
    if correct is None and targets is None:
        return ""
    if not _count(correct) or not _count(targets) or not targets > 0 or correct > targets:
        return f"a test must count correct ones of its targets, got {correct!r} of {targets!r}"
    counted = 100.0 * correct / targets
    if abs(test["accuracy"] - counted) > 50.0 / targets + 1e-6:
        return (
            f"a test accuracy must be that of its counts, {counted:.6g} for {correct} of "
            f"{targets}, got {test['accuracy']:.6g}"
        )
    return ""
