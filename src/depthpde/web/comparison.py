"""The compare page: a grid, some of its tasks and variants, and the report's own statistics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from depthpde.pages.figures.forest import Estimate, forest
from depthpde.pages.formatting import plain
from depthpde.pages.table import Table
from depthpde.records.evidence import Evidence, gather, over_all
from depthpde.records.index.index import Index
from depthpde.records.statistics.paired import mean
from depthpde.report.tables import paired_table


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
    refusal: str
    """Why there is no table; empty if there is one."""


def draw_comparison(
    index: Index, name: str, tasks: Sequence[str], variants: Sequence[str]
) -> ComparisonView | None:
    """Compare what was chosen; None where there is nothing to compare.

    Args:
        index: Reads the records.
        name: The grid; the first one if there is none of that name.
        tasks: Names of tasks; those unknown are passed over, and none means all.
        variants: Names of variants; likewise.
    """
    grids = index.all_grids()
    if not grids:
        return None
    grid = grids.get(name) or next(iter(grids.values()))
    whole = gather(grid, index.records(cell.run for cell in grid.cells))
    chosen_tasks = [each for each in whole.tasks if each in tasks] or list(whole.tasks)
    chosen = [each for each in whole.others if each in variants] or list(whole.others)
    part = whole.select(tasks=chosen_tasks, variants=[whole.baseline, *chosen])
    refusal = "" if part.runs else "None of the chosen runs has finished yet."
    return ComparisonView(
        grids=tuple(grids),
        name=grid.name,
        question=grid.question,
        baseline=plain(whole.baseline),
        tasks=tuple(Choice(each, each, "", each in chosen_tasks) for each in whole.tasks),
        variants=tuple(
            Choice(each, plain(each), whole.words.get(each, ""), each in chosen)
            for each in whole.others
        ),
        table=None if refusal else paired_table(part),
        forest=Markup() if refusal else draw_forest(part),
        refusal=refusal,
    )


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
