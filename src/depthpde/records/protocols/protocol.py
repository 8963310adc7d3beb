"""What an experiment fixes before its first run, and what that makes of its records.

    tune on tuning seeds  →  gates  →  looks at fresh test seeds  →  contrasts in a fixed order

A protocol is data. Its digest stands in every record made under it; a record without that digest
is exploratory, whatever it shows.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Annotated, Any

from depthpde.config import Natural, Positive, Range, Settings
from depthpde.errors import check_name, check_range
from depthpde.records.protocols.endpoints import ENDPOINTS, ESCAPE


class Claimed(StrEnum):
    """What a contrast is expected to show."""

    GREATER = "greater"
    """The first variant is better: the interval of the difference lies above the margin."""
    EQUIVALENT = "equivalent"
    """The two are the same: the interval lies within ± the margin."""


class EvidenceKind(StrEnum):
    """What a record may be used for."""

    CONFIRMATORY = "confirmatory"
    """Made under the protocol, on a test seed: it may support a claim."""
    TUNING = "tuning"
    """Made under the protocol, on a tuning seed: it chooses rates and passes gates, no more."""
    EXPLORATORY = "exploratory"
    """Made without the protocol or under another: it may suggest a question."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BaselineGate(Settings):
    """What the baseline must reach on its tuning seed before any variant is looked at."""

    task: str
    """On which task."""
    endpoint: str
    """What is measured; one of the protocol's endpoints."""
    least: Annotated[float, Range(-1e9, 1e9)]
    """The measure must lie above this."""
    words: str
    """What that number is, such as ``a bag of bytes``."""

    def check(self) -> None:
        """Refuse a mark that nobody can tell the meaning of."""
        if not isinstance(self.words, str) or not self.words.strip():
            raise ValueError(
                f"`words` must say what the gate's number is, such as a bag of bytes, got "
                f"{self.words!r}; name what reaches {self.least:g} without a sequence model"
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedContrast(Settings):
    """One test: the difference of two variants in one endpoint."""

    variant: str
    """What is tested."""
    against: str
    """What it is compared with."""
    endpoint: str
    """In what; one of the protocol's endpoints."""
    claimed: Claimed | str = Claimed.GREATER
    """What is expected."""
    margin: Annotated[float, Range(0.0, 1e9)] = 0.0
    """Beyond it is greater, within it is equivalent; in the endpoint's units."""
    words: str | None = None
    """The claim as a sentence; made of the names for None."""
    beyond: tuple[str, str] | None = None
    """Another difference, (variant, against), that is taken off: the claim is of an interaction."""

    def check(self) -> None:
        """Refuse a test that cannot fail or cannot pass."""
        if self.beyond is not None:
            self._set(beyond=self._other_difference())
        if self.endpoint == ESCAPE:
            self._check_escape()
        if self.claimed is Claimed.EQUIVALENT and not self.margin:
            raise ValueError(
                "`margin` must be above 0 for an equivalence, got 0; no interval is that narrow: "
                "name the largest difference that does not matter"
            )
        if self.variant == self.against:
            raise ValueError(
                f"`against` must be another variant, got {self.against!r} twice; "
                "name what it is compared with"
            )

    def _other_difference(self) -> tuple[str, str]:
        """Return the difference that is taken off, or refuse what is none or the test's own."""
        match self.beyond:
            case (str(first), str(second)) if first != second:
                if {first, second} != {self.variant, self.against}:
                    return first, second
        raise ValueError(
            f"`beyond` must be another difference than {self.variant!r} − {self.against!r}, got "
            f"{self.beyond!r}; name two variants, [variant, against]"
        )

    def _check_escape(self) -> None:
        """Refuse what the log-rank test does not know."""
        claimed = None if self.claimed is Claimed.GREATER else str(self.claimed)
        given = {"claimed": claimed, "margin": self.margin or None, "beyond": self.beyond}
        unknown = [f"{name} {each!r}" for name, each in given.items() if each is not None]
        if unknown:
            raise ValueError(
                f"`claimed`, `margin` and `beyond` must be left out for the endpoint {ESCAPE!r}, "
                f"got {', '.join(unknown)}; its test tells which variant escapes sooner, no more"
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class Look(Settings):
    """One time at which the tests are made."""

    seeds: Positive
    """Test seeds finished in every cell."""
    p: Annotated[float, Range(1e-9, 0.5)]
    """Level of a test at this look: its p must be no larger. Intervals are of 95 % at every look,
    and a margin of what is greater is held to them alone."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StudyProtocol(Settings):
    """What is fixed before the first run of an experiment.

        digest = SHA-256 of all of it

    Example:
        >>> accuracy = PlannedContrast(variant="blur", against="baseline", endpoint="accuracy")
        >>> made = StudyProtocol(name="m", question="Does a blur help?", tuning_seeds=(200,),
        ...     test_seeds=(100, 101), rates=(1e-3,), endpoints=("accuracy",),
        ...     contrasts=(accuracy,), looks=(Look(seeds=2, p=0.05),))
        >>> made.evidence({"study": made.digest, "seed": 100})[0].value
        'confirmatory'
    """

    name: str
    """The experiment's name."""
    question: str
    """What is asked, in one sentence."""
    tuning_seeds: tuple[Natural, ...]
    """Seeds that choose rates and pass gates; never in a result."""
    test_seeds: tuple[Natural, ...]
    """Fresh seeds, in the order in which they are run."""
    rates: tuple[Annotated[float, Range(1e-12, 1e3)], ...]
    """Learning rates tried: the same for every variant."""
    endpoints: tuple[str, ...]
    """What is compared; the first is the one that decides."""
    contrasts: tuple[PlannedContrast, ...]
    """The tests, in the order in which they are made; the first that does not show what it claims
    ends them."""
    looks: tuple[Look, ...]
    """When they are made; all test seeds belong to the last."""
    gates: tuple[BaselineGate, ...] = ()
    """What the baseline must reach first."""
    stopping: str = "after the last look"
    """When the experiment ends, and what goes on after a look, in words."""
    tuning_share: Annotated[float, Range(0.01, 1.0)] | None = None
    """Share of the updates that runs which choose a rate take; None takes them all. Gates are
    always of whole runs."""
    least_tasks: Positive | None = None
    """Gated tasks that must pass: one that fails is left out before any variant is run, and fewer
    than these stop the experiment. None stops it at the first that fails."""

    def check(self) -> None:
        """Refuse a protocol that contradicts itself."""
        for name in ("tuning_seeds", "test_seeds", "rates", "endpoints", "contrasts", "looks"):
            _check_list(name, getattr(self, name))
        shared = sorted(set(self.tuning_seeds) & set(self.test_seeds))
        if shared:
            raise ValueError(
                f"`test_seeds` must share none with `tuning_seeds`, got {shared}; a seed that "
                "chose something cannot test it: take fresh ones"
            )
        if self.least_tasks is not None:
            gated = len({each.task for each in self.gates})
            check_range("least_tasks", self.least_tasks, 1, gated)
        for part in ("gates", "contrasts"):
            for each in getattr(self, part):
                self._check_endpoint(part, each.endpoint)
        counts = [look.seeds for look in self.looks]
        if any(late <= early for early, late in pairwise(counts)):
            raise ValueError(f"`looks` must be at more seeds each time, got {counts}; sort them")
        if counts[-1] != len(self.test_seeds):
            raise ValueError(
                f"`looks` must end with all {len(self.test_seeds)} test seeds, got {counts[-1]}; "
                "a seed that no look waits for is a choice left open"
            )

    def _check_endpoint(self, part: str, endpoint: str) -> None:
        """Refuse what `endpoints` does not list; where the list itself is misspelled, name that."""
        if endpoint not in self.endpoints:
            for each in self.endpoints:
                check_name("endpoints", each, ENDPOINTS)
        check_name(f"{part}.endpoint", endpoint, self.endpoints)

    @property
    def digest(self) -> str:
        """Return 16 digits of the SHA-256 of all that is not None.

        A setting that is None says nothing, so one that is added later changes no old digest.
        """
        values = _said(self.to_dict())
        text = json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def evidence(self, config: Mapping[str, Any]) -> tuple[EvidenceKind, str]:
        """Describe what a record may be used for, and why.

        Args:
            config: The record's; its ``study`` is the digest of the protocol it was made under.
        """
        if (study := config.get("study")) is None:
            return EvidenceKind.EXPLORATORY, "made without a protocol"
        if study != self.digest:
            return EvidenceKind.EXPLORATORY, (
                f"made under protocol {study}, not {self.digest} of {self.name}"
            )
        seed = config.get("seed")
        if seed in self.test_seeds:
            return EvidenceKind.CONFIRMATORY, f"test seed {seed}"
        if seed in self.tuning_seeds:
            return EvidenceKind.TUNING, f"tuning seed {seed}"
        return EvidenceKind.EXPLORATORY, f"seed {seed} is none of the protocol's"

    def look(self, finished: int) -> Look | None:
        """Return the look that is due with so many test seeds in every cell; None before all."""
        due = [look for look in self.looks if look.seeds <= finished]
        return due[-1] if due else None

    def seeds_of(self, look: Look) -> tuple[int, ...]:
        """Return the test seeds that belong to a look: the first ones, whatever else is there."""
        return self.test_seeds[: look.seeds]


def _said(value: Any) -> Any:
    """Return plain values without those that are None."""
    if isinstance(value, Mapping):
        return {key: _said(each) for key, each in value.items() if each is not None}
    return [_said(each) for each in value] if isinstance(value, list) else value


def _check_list(name: str, values: Any) -> None:
    if not isinstance(values, tuple) or not values:
        raise ValueError(f"`{name}` must be a list with at least one entry, got {values!r}")
    if len(set(values)) != len(values):
        raise ValueError(f"`{name}` must name each entry once, got {list(values)}; leave one out")
