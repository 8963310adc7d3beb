"""ComparisonReport: the entrants judged by pairs, as a table, as JSON, as a page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from depthpde import __version__
from depthpde.comparison.entrant import Entrant
from depthpde.comparison.page import DIGITS, render_page
from depthpde.files import write_whole
from depthpde.pages.formatting import counted, format_interval, signed
from depthpde.pages.table import Table, TableEntry
from depthpde.records.evidence import SEEDS
from depthpde.records.scores import Endpoint
from depthpde.records.statistics.paired import holm
from depthpde.records.verdicts import LEVEL, Hypothesis, Outcome, Verdict, judge, with_p

UNITS = {Endpoint.ACCURACY: "points", Endpoint.LOSS: "nats"}
MARGINS = {Endpoint.ACCURACY: 0.5, Endpoint.LOSS: 0.01}
"""Below which a difference does not matter, chosen before looking."""
WORDS = {
    Outcome.SUPPORTED: "better",
    Outcome.SMALLER: "better",
    Outcome.CONTRADICTED: "worse",
    Outcome.EQUIVALENT: "the same",
    Outcome.INCONCLUSIVE: "inconclusive",
    Outcome.WAITING: "not judged yet",
}


@dataclass(frozen=True, kw_only=True)  # no slots: verdicts are computed once
class ComparisonReport:
    """What a comparison found.

        gain = how much better a variant is than the first one, seed by seed

    >>> text = dp.Task.from_text("abc", "abc" * 2000, window=32)
    >>> result = dp.compare(text, {"plain": {}, "wide": {"dim": 128}})   # doctest: +SKIP
    """

    task: str
    endpoint: Endpoint
    """What is compared: test accuracy in percent, or test loss in nats."""
    entrants: Sequence[Entrant]
    """The first is what the others are compared with."""
    results: Path | None = None
    """Where the records lie; None where there are none."""

    @property
    def baseline(self) -> Entrant:
        """What the others are compared with."""
        return self.entrants[0]

    @property
    def unit(self) -> str:
        """Of a gain."""
        return UNITS[self.endpoint]

    @property
    def pairs(self) -> int:
        """Pairs of the variant that has the fewest."""
        return min((len(self.gains(each)) for each in self.entrants[1:]), default=0)

    @property
    def least_pairs(self) -> int:
        """The fewest pairs that can carry a verdict, corrected for the number of variants m.

        m · 2^(1 − n) ≤ 5 %,    and six in any case
        """
        return max(SEEDS, 1 + math.ceil(math.log2(max(1, len(self.entrants) - 1) / LEVEL)))

    def gains(self, entrant: Entrant) -> dict[int, float]:
        """Return seed → gain over the baseline."""
        side = -1.0 if self.endpoint is Endpoint.LOSS else 1.0
        base = self.baseline.scores
        shared = [seed for seed in entrant.scores if seed in base]
        return {seed: side * (entrant.scores[seed] - base[seed]) for seed in shared}

    @cached_property
    def verdicts(self) -> dict[str, Verdict]:
        """Variant → verdict on the claim that it is better, corrected for their number by Holm."""
        claim = Hypothesis(sign=1, margin=MARGINS[self.endpoint])
        found = {
            each.label: judge({self.task: list(self.gains(each).values())}, claim, unit=self.unit)
            for each in self.entrants[1:]
            if len(self.gains(each)) >= 2
        }
        tested = {label: each.p for label, each in found.items() if each.p is not None}
        corrected = dict(zip(tested, holm(list(tested.values())), strict=True)) if tested else {}
        return {
            label: with_p(each, corrected[label]) if label in corrected else each
            for label, each in found.items()
        }

    def verdict(self, label: str) -> str:
        """Return one word for a variant; empty for the baseline and where nothing can be said."""
        found = self.verdicts.get(label)
        return "" if found is None else WORDS[found.outcome]

    def sentences(self) -> list[str]:
        """Describe what was found of each variant, the best first."""
        order = sorted(self.verdicts.items(), key=lambda each: -each[1].effect)
        return [f"{label}: {self._spell(label, found)}" for label, found in order]

    def diverged(self) -> list[str]:
        """Describe which runs diverged, and what they count as."""
        lost = "counted as the largest class" if self.endpoint is Endpoint.ACCURACY else "left out"
        return [
            f"{each.label}: {counted(each.diverged, 'run')} diverged, {lost}"
            for each in self.entrants
            if each.diverged
        ]

    def advice(self) -> str:
        """Describe what to do next."""
        kept = "; what is recorded is not computed again" if self.results else ""
        lost = [each.label for each in self.entrants if each.diverged and not each.scores]
        if lost:  # more seeds would diverge as these did
            return (
                f"every run of {', '.join(lost)} diverged and has no {self.endpoint.value}: train "
                "more gently, or leave it out"
            )
        if self.pairs < self.least_pairs:
            return (
                f"{counted(self.pairs, 'pair')} cannot carry a verdict, {self.least_pairs} can: "
                f"call it again with seeds={self.least_pairs}{kept}"
            )
        if any(each.outcome is Outcome.INCONCLUSIVE for each in self.verdicts.values()):
            return f"more seeds narrow what is inconclusive{kept}"
        return "try the best one at your full size, beside its control, with seeds of its own"

    def table(self) -> Table:
        """Return the comparison as a table in every notation."""
        digits = DIGITS[self.endpoint]
        name = "accuracy, %" if self.endpoint is Endpoint.ACCURACY else "loss, nats"
        heads = ("", name, f"gain, {self.unit} [95 %]", "pairs won", "parameters", "verdict")
        rows = []
        for each in self.entrants:
            gains, found = self.gains(each), self.verdicts.get(each.label)
            first = each is self.baseline
            won = f"{sum(gain > 0 for gain in gains.values())} of {len(gains)}"
            spread = " ".join(f"{value:.{digits}f}" for value in each.scores.values())
            gain = "—"
            if found is not None:
                ends = format_interval(found.interval, digits) if found.interval else ""
                gain = f"{signed(found.effect, digits)} {ends}".rstrip()
            more = each.parameters - self.baseline.parameters
            entries = (
                TableEntry(each.label, title=each.words),
                TableEntry(
                    f"{each.mean:.{digits}f}" if each.scores else "–",
                    title=f"seeds: {spread}",
                ),
                TableEntry(gain),
                TableEntry("" if first else won),
                TableEntry(f"{each.parameters:,}" if first else f"{more:+,}".replace("-", "−")),
                TableEntry(self.verdict(each.label)),
            )
            rows.append(entries)
        title = f"{self.task} · {counted(self.pairs, 'paired seed')} · test {self.endpoint.value}"
        return Table(
            title=title, heads=heads, rows=tuple(rows), notes=(*self.sentences(), *self.diverged())
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "task": self.task,
            "endpoint": self.endpoint.value,
            "depthpde": __version__,
            "results": None if self.results is None else str(self.results),
            "variants": {
                each.label: {
                    "scores": {str(seed): value for seed, value in each.scores.items()},
                    "gains": {str(seed): value for seed, value in self.gains(each).items()},
                    "parameters": each.parameters,
                    "ratios": dict(each.ratios),
                    "verdict": self.verdict(each.label),
                }
                for each in self.entrants
            },
            "advice": self.advice(),
        }

    def save(self, path: str | Path) -> Path:
        """Write the comparison as one self-contained HTML page; its folder is made.

        Args:
            path: The file.
        """
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        return write_whole(path, render_page(self))

    def __str__(self) -> str:
        """Return the table, what it says and what to do next."""
        return f"{self.table().text()}next: {self.advice()}"

    def _repr_html_(self) -> str:
        return self.table().html()

    def _spell(self, label: str, found: Verdict) -> str:
        gains = list(self.gains(next(e for e in self.entrants if e.label == label)).values())
        digits = DIGITS[self.endpoint]
        won = f"{sum(gain > 0 for gain in gains)} of {counted(len(gains), 'pair')}"
        size = f"{signed(found.effect, digits)} {self.unit}"
        return f"{self.verdict(label)}, {size}, better in {won}; {found.power}"
