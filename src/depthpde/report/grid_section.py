"""One grid's part of a report: its verdict, figures, tables, and a section for each variant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from depthpde.pages.figures.curves import curves
from depthpde.pages.figures.diagram import Effect, diagram
from depthpde.pages.figures.forest import Estimate, forest, forests
from depthpde.pages.figures.heatmap import Tint, heatmap
from depthpde.pages.figures.survival import survival
from depthpde.pages.formatting import anchor, format_interval, format_p, plain, short_tasks, signed
from depthpde.pages.table import Table
from depthpde.papers.protocol_table import at_last_look
from depthpde.records.escapes import LEARNED_AT_ONCE, run_escape
from depthpde.records.evidence import Evidence, by_task, over_all, placed_at
from depthpde.records.learning_curves import LearningCurve
from depthpde.records.probes import WORDS, depth_curves
from depthpde.records.protocols.steps import stage_of
from depthpde.records.run_model import VariantRole
from depthpde.records.statistics.paired import Comparison, mean
from depthpde.records.statistics.stratified import Overall
from depthpde.records.statistics.survival import EscapeTime, kaplan_meier
from depthpde.report.cost import cost_table
from depthpde.report.sentences import Sentence, judge
from depthpde.report.tables import paired_table
from depthpde.report.variant_section import (
    VariantSection,
    cell_anchor,
    curve_line,
    task_curves,
    variant_anchor,
    write_variant_section,
)

MOST_NAMED = 24
"""Runs that the hint of one difference names: with hundreds it would be most of the page."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GridSection:
    """One grid, ready for a page."""

    evidence: Evidence
    anchor: str
    verdict: Sequence[Sentence]
    figures: Mapping[str, str]
    """Name → SVG: ``diagram``, ``forest``, ``forest-by-task``, ``heat-map``, ``survival``."""
    curves: Mapping[str, str]
    """Task → SVG: baseline, best and worst of ours, best of the rest."""
    depth: Mapping[str, str]
    """Measure → SVG, by depth."""
    table: Table
    cost: Table
    variant_sections: Sequence[VariantSection]


def write_grid_section(evidence: Evidence) -> GridSection:
    """Compute everything that a report shows of one grid; nothing is compared before its look."""
    compared = at_last_look(evidence)
    overall, single = over_all(compared), by_task(compared)
    at = placed_at(compared)
    shown = _leading(compared, overall)
    return GridSection(
        evidence=evidence,
        anchor=anchor("grid", evidence.name),
        verdict=judge(evidence),
        figures=_figures(compared, overall, single, at) | _survival(compared, shown),
        curves={
            task: drawn
            for task in _begun(compared)
            if (drawn := task_curves(compared, task, shown))
        },
        depth=_depth(compared, shown),
        table=paired_table(evidence),
        cost=cost_table(evidence),
        variant_sections=[
            write_variant_section(compared, each, overall.get(each), at) for each in compared.others
        ],
    )


def _begun(evidence: Evidence) -> list[str]:
    """Return the tasks of which a run may be shown."""
    begun = {task for task, _ in evidence.runs}
    return [task for task in evidence.tasks if task in begun]


def _figures(
    evidence: Evidence,
    overall: Mapping[str, Overall],
    single: Mapping[str, Mapping[str, Comparison]],
    at: Mapping[str, str],
) -> dict[str, str]:
    """Draw what compares all variants; what has nothing to show is left out."""
    found = {}
    effects = {
        position: _effect(evidence, variant, overall[variant])
        for position, variant in at.items()
        if variant in overall
    }
    if effects:
        found["diagram"] = diagram(effects)
    rows = [each for each in evidence.others if each in overall]
    if not rows:
        return found
    means = [_overall_estimate(evidence, each, overall[each]) for each in rows]
    found["forest"] = forest(
        means, title=f"{evidence.name}: mean difference over tasks that stand in a mean"
    )
    if len(evidence.tasks) == 1:
        return found
    short = short_tasks(evidence.tasks)
    panels: dict[str, list[Estimate | None]] = {"mean": list(means)}
    for task in evidence.tasks:
        panels[short[task]] = [_estimate(evidence, task, each, single[task]) for each in rows]
    labels = [plain(each) for each in rows]
    found["forest-by-task"] = forests(panels, labels, title=f"{evidence.name}: by task")
    cells = {
        (row, name): _tint(each)
        for name, estimates in panels.items()
        for row, each in zip(rows, estimates, strict=True)
        if each is not None
    }
    names = dict(zip(rows, labels, strict=True))
    found["heat-map"] = heatmap(
        rows, list(panels), cells, labels=names, title=f"{evidence.name}: points by task"
    )
    return found


def _survival(evidence: Evidence, shown: Mapping[str, str]) -> dict[str, str]:
    """Draw how long runs stay on the plateau of the first task that is learned at once."""
    for task in (each for each in evidence.tasks if each in LEARNED_AT_ONCE):
        times = {plain(each): _times(evidence, task, each) for each in shown}
        known = {name: each for name, each in times.items() if each}
        if known:
            return {
                "survival": survival(
                    {name: kaplan_meier(each) for name, each in known.items()},
                    max(time.update for each in known.values() for time in each),
                    roles={plain(name): role for name, role in shown.items()},
                    title=f"{task}: share of runs still on the plateau",
                )
            }
    return {}


def _times(evidence: Evidence, task: str, variant: str) -> list[EscapeTime]:
    runs = evidence.runs.get((task, variant), {}).values()
    found = (run_escape(run, LEARNED_AT_ONCE[task]) for run in runs)
    return [each for each in found if each is not None]


def _effect(evidence: Evidence, variant: str, found: Overall) -> Effect:
    estimate = _overall_estimate(evidence, variant, found)
    return Effect(
        mean=found.mean,
        low=estimate.low,
        high=estimate.high,
        title=estimate.title,
        href=estimate.href,
    )


def _overall_estimate(evidence: Evidence, variant: str, found: Overall) -> Estimate:
    ends = found.interval
    effect = f"{signed(found.mean)} {format_interval(ends)}"
    return Estimate(
        label=plain(variant),
        mean=found.mean,
        low=ends.low if ends else None,
        high=ends.high if ends else None,
        n=found.n,
        role=evidence.role(variant),
        points=tuple(
            mean(list(evidence.pairs(task, variant).values()))
            for task in evidence.tasks
            if evidence.pairs(task, variant)
        ),
        title=f"{plain(variant)}: {effect}, n = {found.n} pairs on {found.tasks} task(s)"
        f"{_p(evidence, found)}; ticks: each task",
        href=f"#{variant_anchor(evidence, variant)}",
    )


def _p(evidence: Evidence, found: Overall) -> str:
    return "" if stage_of(evidence.name) else f", p = {format_p(found.p_holm)} (Holm)"


def _estimate(
    evidence: Evidence, task: str, variant: str, single: Mapping[str, Comparison]
) -> Estimate | None:
    pairs = evidence.pairs(task, variant)
    if not pairs:
        return None
    ends = single[variant].interval if variant in single else None
    seeds = list(pairs)
    runs = " ".join(evidence.runs[task, variant][seed].id for seed in seeds[:MOST_NAMED])
    runs += f" and {len(seeds) - MOST_NAMED} more" * (len(seeds) > MOST_NAMED)
    value = mean(list(pairs.values()))
    return Estimate(
        label=plain(variant),
        mean=value,
        low=ends.low if ends else None,
        high=ends.high if ends else None,
        n=len(pairs),
        role=evidence.role(variant),
        points=tuple(pairs.values()),
        title=f"{plain(variant)} on {task}: {signed(value)} {format_interval(ends)}, "
        f"n = {len(pairs)}; runs {runs}",
        href=f"#{cell_anchor(evidence, task, variant)}",
    )


def _tint(each: Estimate) -> Tint:
    return Tint(
        value=each.mean,
        text=signed(each.mean),
        strong=each.is_clear,
        title=each.title,
        href=each.href,
    )


def _leading(evidence: Evidence, overall: Mapping[str, Overall]) -> dict[str, str]:
    """Choose what a figure with few lines shows: variant → role of its line."""
    chosen = {evidence.baseline: "baseline"}
    if not overall:  # nothing to choose by
        return chosen | {name: evidence.role(name).value for name in evidence.others[:3]}
    ours = {name: o.mean for name, o in overall.items() if evidence.role(name) is VariantRole.OURS}
    rest = {name: o.mean for name, o in overall.items() if name not in ours}
    for known, role in ((rest, "control"), (ours, "ours")):
        if known:
            chosen[max(known, key=lambda name: known[name])] = role
    spread = ours or rest
    if len(spread) > 1:
        chosen[min(spread, key=lambda name: spread[name])] = "other"
    return chosen


def _depth(evidence: Evidence, shown: Mapping[str, str]) -> dict[str, str]:
    by_variant = {each: depth_curves(evidence.records(each)) for each in shown}
    names = dict.fromkeys(name for courses in by_variant.values() for name in courses)
    ordered = [*(each for each in WORDS if each in names), *(n for n in names if n not in WORDS)]
    return {
        name: curves(
            [
                curve_line(variant, by_variant[variant][name], role)
                for variant, role in shown.items()
                if name in by_variant[variant]
            ],
            title=f"{WORDS.get(name, name)} by depth",
            x_label="depth, in blocks",
            x_ticks=_whole(by_variant, name),
            y_label=WORDS.get(name, name),
        )
        for name in ordered
    }


def _whole(by_variant: Mapping[str, Mapping[str, LearningCurve]], name: str) -> dict[float, str]:
    """Mark an axis of depth at whole blocks, ten at most."""
    known = (courses[name].updates for courses in by_variant.values() if name in courses)
    last = max((updates[-1] for updates in known if updates), default=0)
    return {float(at): str(at) for at in range(0, last + 1, 1 + last // 10)}
