"""The compare page: a grid, some of its tasks and variants, and the report's own statistics."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module

from markupsafe import Markup

from depthpde.pages.figures.forest import Estimate, forest
from depthpde.pages.formatting import plain
from depthpde.pages.table import Table
from depthpde.papers.protocol_table import at_last_look
from depthpde.records.evidence import Evidence, gather, over_all
from depthpde.records.index.index import Index
from depthpde.records.record import FINISHED, Grid
from depthpde.records.statistics.paired import mean
from depthpde.report.tables import paired_table
from depthpde.report.variant_section import task_curves

KEPT = 32
"""Comparisons that are kept."""
MOST_CURVES = 4
"""Variants whose curves are drawn beside the baseline's."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One box that can be ticked."""

    value: str
    label: str
    words: str
    chosen: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonView:
    """All that the page shows."""

    grids: tuple[str, ...]
    name: str
    question: str
    baseline: str
    tasks: tuple[Choice, ...]
    variants: tuple[Choice, ...]
    table: Table | None
    forest: Markup
    """The same differences as a figure; empty without any."""
    curves: tuple[Markup, ...]
    """One figure a task: validation accuracy along training."""
    drawn: tuple[str, ...]
    """The variants whose curves are drawn."""
    refusal: str
    """Why there is no table; empty if there is one."""


class Comparisons:
    """Comparisons of one results folder, each kept until one of its runs changes.

    Args:
        index: Reads the records.
    """

    def __init__(self, index: Index) -> None:
        self.index = index
        self._lock = threading.Lock()
        self._kept: dict[tuple[str, ...], tuple[int, str, ComparisonView]] = {}

    def draw(
        self, name: str, tasks: Sequence[str], variants: Sequence[str]
    ) -> ComparisonView | None:
        """Compare what was chosen; None where there is nothing to compare.

        Args:
            name: The grid; the one that ran last if there is none of that name.
            tasks: Names of tasks; those unknown are passed over, and none means all.
            variants: Names of variants; likewise.
        """
        grids = self.index.all_grids()
        if not grids:
            return None
        grid = grids.get(name) or grids[self._newest(grids)]
        key = (grid.name, *tasks, "", *variants)
        with self._lock:
            version = self.index.snapshot.version
            kept = self._kept.pop(key, None)
            if kept is None or kept[0] != version:
                now = self.index.fingerprint(cell.run for cell in grid.cells)
                if kept is None or kept[1] != now or kept[2].grids != tuple(grids):
                    view = draw_comparison(self.index, grid, tuple(grids), tasks, variants)
                else:
                    view = kept[2]
                kept = (version, now, view)
            self._kept[key] = kept
            while len(self._kept) > KEPT:
                del self._kept[next(iter(self._kept))]
            return kept[2]

    def _newest(self, grids: Mapping[str, Grid]) -> str:
        """Name the grid of which a run finished last."""
        entries = self.index.snapshot.entries

        def last(name: str) -> float:
            found = (entries.get(cell.run) for cell in grids[name].cells)
            return max((e.changed for e in found if e and e.state in FINISHED), default=0.0)

        return max(grids, key=last)


def load_statistics() -> None:
    """Import what comparisons count with before anybody waits for it."""
    import_module("scipy.special")


def draw_comparison(
    index: Index, grid: Grid, grids: tuple[str, ...], tasks: Sequence[str], variants: Sequence[str]
) -> ComparisonView:
    """Compare what was chosen of a grid.

    Args:
        index: Reads the records.
        grid: Which runs.
        grids: The names of all grids.
        tasks: Names of tasks; those unknown are passed over, and none means all.
        variants: Names of variants; likewise.
    """
    protocol = index.snapshot.protocols.get(grid.name)
    whole = gather(grid, index.summaries(cell.run for cell in grid.cells), protocol)
    chosen_tasks = [each for each in whole.tasks if each in tasks] or list(whole.tasks)
    chosen = [each for each in whole.others if each in variants] or list(whole.others)
    part = whole.select(tasks=chosen_tasks, variants=[whole.baseline, *chosen])
    refusal = "" if part.runs else "None of the chosen runs has finished yet."
    compared = at_last_look(part)
    return ComparisonView(
        grids=grids,
        name=grid.name,
        question=grid.question,
        baseline=plain(whole.baseline),
        tasks=tuple(Choice(each, each, "", each in chosen_tasks) for each in whole.tasks),
        variants=tuple(
            Choice(each, plain(each), whole.words.get(each, ""), each in chosen)
            for each in whole.others
        ),
        table=None if refusal else paired_table(part),
        forest=draw_forest(compared) if compared.runs else Markup(),
        curves=draw_curves(compared) if compared.runs else (),
        drawn=tuple(plain(each) for each in _drawn(part)),
        refusal=refusal,
    )


def draw_curves(evidence: Evidence) -> tuple[Markup, ...]:
    """Draw the validation curves of the first few variants on every task."""
    shown = {each: evidence.role(each).value for each in _drawn(evidence)}
    drawn = (task_curves(evidence, task, shown) for task in evidence.tasks)
    return tuple(Markup(each) for each in drawn if each)


def _drawn(evidence: Evidence) -> list[str]:
    """Name the variants whose curves are drawn: more than a few hide each other."""
    return [evidence.baseline, *evidence.others[:MOST_CURVES]]


def draw_forest(evidence: Evidence) -> Markup:
    """Draw every variant's mean difference over the tasks, as the report draws it."""
    estimates = [
        Estimate(
            label=plain(variant),
            mean=each.mean,
            low=None if each.interval is None else each.interval.low,
            high=None if each.interval is None else each.interval.high,
            n=each.n,
            role=evidence.role(variant),
            points=tuple(
                mean(list(pairs.values()))
                for pairs in (evidence.pairs(task, variant) for task in evidence.tasks)
                if pairs
            ),
        )
        for variant, each in over_all(evidence).items()
    ]
    return Markup(forest(estimates)) if estimates else Markup()
