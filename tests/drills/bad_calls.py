"""Calls of the public API with arguments that do not fit, drawn by a seed, and what came of each.

A call is a target with good arguments of which one or two are spoilt: by something odd for
any argument (a string, a bool, an array, a lambda …) or for its kind (a field with two axes, a
mask of numbers, a ratio of NaN, a tensor on the meta device …). What comes of it is one of

    fine     it returned, and agrees with the dense float64 reference where there is one
    refused  an error of ours, raised at one of our own `raise` lines, with its parts
    raw      an error of torch, numpy or Python itself
    wrong    it returned something else than the reference, or took what has no meaning

    python -m drills.bad_calls 20000 SEED        from tests/, prints what was raw or wrong
"""

from __future__ import annotations

import collections
import linecache
import random
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import depthpde
from drills.bad_values import ODD, Draw

SOURCE = Path(depthpde.__file__).parent
OUTCOMES = ("fine", "refused", "raw", "wrong")
PATIENCE = 60.0
"""Seconds after which a call counts as one that never ends."""
NEVER = (bytes, complex, Path, type, range, torch.device, type(lambda: 0), nn.Linear)
"""What no argument takes that is not said to take anything."""
PARTS = ("must", "need", "got", "cannot", "has no", "have no")
"""Words of which a sentence of ours has at least one: what is wanted, or what came."""


@dataclass(frozen=True)
class Argument:
    """One argument of a target."""

    good: Draw
    """A value that fits."""
    bad: Sequence[Callable[[], Any]] = ()
    """Values of its kind that do not, or that are rare."""
    always: bool = False
    """Given in every call; the others are left out more often than not."""
    anything: bool = False
    """Takes objects of every kind: functions, modules, mappings."""


@dataclass(frozen=True)
class Target:
    """Something public that is called."""

    name: str
    call: Callable[..., Any]
    takes: Mapping[str, Argument]
    agrees: Callable[[Mapping[str, Any], Any], str] = lambda given, result: ""
    """What is wrong with a result; empty where nothing is, or nothing is known."""
    weight: int = 4


@dataclass(frozen=True)
class Outcome:
    """What came of one call."""

    target: str
    kind: str
    about: str
    """The error, or what is wrong."""
    given: str
    """The spoilt arguments."""


def make_call(target: Target, chance: random.Random) -> tuple[dict[str, Any], list[str]]:
    """Draw the arguments of one call, and name those that are spoilt."""
    given = {
        name: each.good(chance)
        for name, each in target.takes.items()
        if each.always or chance.random() < 0.25
    }
    spoilt = (
        []
        if chance.random() < 0.05
        else chance.sample(list(target.takes), min(len(target.takes), 1 + (chance.random() < 0.25)))
    )
    for name in spoilt:
        own = target.takes[name].bad
        pile = own if own and chance.random() < 0.6 else ODD
        given[name] = chance.choice(list(pile))()
    return given, spoilt


def outcome_of(target: Target, given: Mapping[str, Any], spoilt: Sequence[str]) -> Outcome:
    """Make a call and say what came of it."""
    about = ", ".join(f"{name}={brief(given[name])}" for name in spoilt)
    try:
        with at_most(PATIENCE):
            result = target.call(**given)
    except Exception as error:
        kind, text = judge_error(error)
        return Outcome(target.name, kind, text, about)
    for name in spoilt:
        if isinstance(given[name], NEVER) and not target.takes[name].anything:
            return Outcome(target.name, "wrong", f"took a {type(given[name]).__name__}", about)
    try:
        found = target.agrees(given, result)
    except Exception as error:  # the reference has no meaning for what was taken
        found = f"taken, but the reference says {error}"
    return Outcome(target.name, "wrong" if found else "fine", found, about)


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """End what takes longer, by an error; in the main thread."""

    def end(number: int, frame: object) -> None:
        raise TimeoutError(f"no answer within {seconds:g} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def judge_error(error: Exception) -> tuple[str, str]:
    """Tell whether an error is ours: raised by a `raise` of the package, in words of ours."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    ours = Path(last.filename).is_relative_to(SOURCE)
    line = linecache.getline(last.filename, last.lineno or 0).strip()
    text = f"{type(error).__name__}: {error}".replace("\n", " ")[:200]
    where = f"{Path(last.filename).name}:{last.lineno}"
    parts = any(part in str(error) for part in PARTS)
    kind = "refused" if ours and "raise" in line and parts else "raw"
    return kind, f"{text} ({where})"


def brief(value: Any) -> str:
    """Show a value in a few words."""
    if isinstance(value, Tensor) and not value.is_nested:
        return f"{value.dtype}{list(value.shape)}@{value.device}"
    return repr(value)[:60]


def drill(targets: Sequence[Target], calls: int, seed: int) -> list[Outcome]:
    """Make so many calls; the same seed makes the same calls."""
    chance = random.Random(seed)
    torch.manual_seed(seed)
    weights = [target.weight for target in targets]
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nested and quantized tensors warn when they are made
        for _ in range(calls):
            (target,) = chance.choices(targets, weights)
            found.append(outcome_of(target, *make_call(target, chance)))
    return found


def count(outcomes: Sequence[Outcome]) -> dict[str, int]:
    """Count the outcomes of each kind."""
    seen = collections.Counter(each.kind for each in outcomes)
    return {kind: seen[kind] for kind in OUTCOMES}


def main(calls: int, seed: int) -> None:
    """Print what was raw or wrong, the most frequent first."""
    from drills.bad_model_targets import every_target

    targets = every_target()
    outcomes = drill(targets, calls, seed)
    shown = collections.Counter(
        (each.kind, each.target, each.about[:150])
        for each in outcomes
        if each.kind in ("raw", "wrong")
    )
    examples = {(each.kind, each.target, each.about[:150]): each.given for each in outcomes}
    for key, times in shown.most_common(400):
        print(f"{times:5} {' | '.join(key)}   <- {examples[key]}")
    by_target = collections.Counter((each.target, each.kind) for each in outcomes)
    for target in targets:
        print(target.name, {kind: by_target[target.name, kind] for kind in OUTCOMES})
    print(count(outcomes), f"seed {seed}")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
