"""The tables of a report: paired differences, costs, findings."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from depthpde.pages.formatting import (
    counted,
    format_interval,
    format_number,
    format_p,
    plain,
    short_tasks,
    signed,
)
from depthpde.pages.table import Table, TableEntry
from depthpde.papers.protocol_table import at_last_look, awaited_look
from depthpde.records.escapes import LEARNED_AT_ONCE, Escape
from depthpde.records.evidence import (
    Evidence,
    by_task,
    escapes,
    in_mean,
    over_all,
    trivial,
    with_escapes,
)
from depthpde.records.protocols.protocol import StudyProtocol
from depthpde.records.protocols.steps import stage_of
from depthpde.records.statistics.paired import LEVEL, Comparison, mean, too_few
from depthpde.records.statistics.stratified import Overall

MOST_SEEDS = 24
"""Seeds whose numbers a cell tells one by one."""


def paired_table(evidence: Evidence) -> Table:
    """Tabulate variants by tasks: the baseline's accuracy, then each variant's difference from it.

    Where a variant's runs have no baseline of their seed, their accuracy stands without a sign.
    The mean difference is over the tasks that stand in a mean, with its 95 % interval and Holm's p
    over all variants; see `over_all`. Where another task is learned at once or not yet, the mean
    with it stands beside. Use ``evidence.select(tasks=…, variants=…)`` for a part.

    >>> results = dp.read_results(Path("results"))
    >>> table = dp.paired_table(dp.gather(results.grids["decoder-longer"], results.records))
    """
    recorded, awaited = evidence, awaited_look(evidence)
    evidence = at_last_look(recorded)
    short = short_tasks(evidence.tasks)
    overall, single = over_all(evidence), by_task(evidence)
    seeds = _seeds(evidence, paired=bool(overall))
    whole = with_escapes(evidence) if _at_once(evidence) else {}
    untested = stage_of(evidence.name) is not None
    return Table(
        title=f"{evidence.name} · {', '.join(evidence.tasks)} · {seeds}",
        heads=("", *(short[task] for task in evidence.tasks), *_heads(evidence)),
        rows=(
            *([_baseline_row(evidence)] if evidence.has_baseline else []),
            *(
                _row(evidence, variant, single, overall.get(variant), whole, untested)
                for variant in evidence.others
            ),
        ),
        notes=(
            *_awaits(awaited),
            *_means(evidence, overall, untested),
            *_notes(evidence, short),
            *_unsigned(evidence),
        ),
        warnings=_warnings(recorded, {} if untested else overall),
        tidy=tuple(_tidy(evidence, single, overall, whole, untested)),
    )


def _heads(evidence: Evidence) -> tuple[str, ...]:
    """Return the heads of the last columns: the mean, with what is learned at once too, and p."""
    at_once = _at_once(evidence)
    if not at_once:
        return ("mean Δ [95 % CI]", "p (Holm)")
    names = ", ".join(short_tasks(evidence.tasks)[task] for task in at_once)
    return (f"mean Δ without {names} [95 % CI]", f"with {names}", "p (Holm)")


def _at_once(evidence: Evidence) -> list[str]:
    """Return the tasks that stand beside a mean; none where there is no other task."""
    inside = in_mean(evidence)
    return [task for task in evidence.tasks if task not in inside] if inside else []


def _awaits(protocol: StudyProtocol | None) -> list[str]:
    """Describe why nothing is compared, where a look is awaited."""
    if protocol is None:
        return []
    return [f"nothing is compared before the first look, at {protocol.looks[0].seeds} seeds"]


def _means(evidence: Evidence, overall: Mapping[str, Overall], untested: bool) -> list[str]:
    """Describe what stands in the mean, and what Holm's correction costs."""
    text = []
    names = [
        short_tasks(evidence.tasks)[each] for each in evidence.tasks if each in LEARNED_AT_ONCE
    ]
    if names:
        text.append(
            f"{', '.join(names)} is learned at once or not yet: a mean with it counts escapes in "
            "points and has no interval; see the time to escape"
        )
    if untested:
        text.append("no p: these runs choose a rate or open a gate, and are no result")
    elif len(overall) > 1:
        text.append(
            f"p (Holm) pays for {len(overall)} comparisons: the best must reach "
            f"{format_p(LEVEL / len(overall))}; claims are judged in an order of their own instead"
        )
    return text


def _seeds(evidence: Evidence, *, paired: bool) -> str:
    low, high = evidence.seeds
    number = f"{high}" if low == high else f"{low} to {high}"
    seeds = "seed" if low == high == 1 else "seeds"
    if paired:
        return f"{number} paired {seeds}"
    pending = evidence.missing and evidence.has_baseline
    return f"{number} {seeds}, {'no pair yet' if pending else 'nothing to pair with'}"


def _baseline_row(evidence: Evidence) -> tuple[TableEntry, ...]:
    cells = [_accuracy(evidence, task, evidence.baseline) for task in evidence.tasks]
    rest = [TableEntry("—") for _ in _heads(evidence)]
    return (TableEntry(plain(evidence.baseline)), *cells, *rest)


def _accuracy(evidence: Evidence, task: str, variant: str) -> TableEntry:
    runs = evidence.accuracies(task, variant)
    if not runs:
        return TableEntry("…", "no run to show yet")
    return TableEntry(
        format_number(mean(list(runs.values()))),
        f"mean of n = {len(runs)} ({_by_seed(runs, format_number)})",
        (task, variant),
    )


def _row(
    evidence: Evidence,
    variant: str,
    single: Mapping[str, Mapping[str, Comparison]],
    overall: Overall | None,
    whole: Mapping[str, float],
    untested: bool,
) -> tuple[TableEntry, ...]:
    cells = [
        _difference(evidence, task, variant, single[task].get(variant)) for task in evidence.tasks
    ]
    if overall is None:
        none = TableEntry("…" if evidence.missing else "—")
        return (TableEntry(plain(variant)), *cells, *(none for _ in _heads(evidence)))
    asked = len(in_mean(evidence) or evidence.tasks)
    part = "" if overall.tasks == asked else f" ({counted(overall.tasks, 'task')})"
    text = f"{signed(overall.mean)} {format_interval(overall.interval)}{part}"
    star = overall.p_holm <= LEVEL and not untested
    title = f"n = {overall.n} pairs on {counted(overall.tasks, 'task')}"
    title += "" if untested else f", p = {format_p(overall.p)} alone"
    shown = "…" if untested else format_p(overall.p_holm) + (" *" if star else "")
    return (
        TableEntry(plain(variant), evidence.words.get(variant, "")),
        *cells,
        TableEntry(text, title, ("", variant), strong=star and overall.clear),
        *([TableEntry(signed(whole[variant]), "every task; escapes in points")] if whole else []),
        TableEntry(shown, title, strong=star and overall.clear),
    )


def _difference(
    evidence: Evidence, task: str, variant: str, comparison: Comparison | None
) -> TableEntry:
    pairs = evidence.pairs(task, variant)
    if not pairs and evidence.accuracies(task, variant):
        return _accuracy(evidence, task, variant)
    if not pairs:
        return TableEntry("…", "no pair of runs to show yet")
    interval = None if comparison is None else comparison.interval
    title = (
        f"n = {len(pairs)}, 95 % interval {format_interval(interval)} ({_by_seed(pairs, signed)})"
    )
    return TableEntry(signed(mean(list(pairs.values()))), title, (task, variant))


def _by_seed(values: Mapping[int, float], spell: Callable[[float], str]) -> str:
    """Spell what each seed reached; of many the least and the largest."""
    if len(values) > MOST_SEEDS:
        return f"from {spell(min(values.values()))} to {spell(max(values.values()))}"
    return ", ".join(f"seed {seed}: {spell(each)}" for seed, each in values.items())


def _notes(evidence: Evidence, short: Mapping[str, str]) -> tuple[str, ...]:
    lines = []
    for task in evidence.tasks:
        text = ", ".join(
            f"{name} {format_number(line)}" for name, line in trivial(evidence, task).items()
        )
        if text:
            lines.append(f"{text} ({short[task]})")
    notes = [f"trivial: {' · '.join(lines)}"] if lines else []
    every, rest = [], []
    for task in evidence.tasks:
        plateaus, whole = _plateaus(evidence, task)
        rest += [f"{each} ({short[task]})" for each in plateaus]
        every += [short[task]] if whole else []
    if every:
        rest.append(f"every run is past every trivial line on {', '.join(every)}")
    return tuple(notes + rest)


def _unsigned(evidence: Evidence) -> list[str]:
    """Describe what a number without a sign is, where a variant has one."""
    alone = any(
        evidence.accuracies(task, variant) and not evidence.pairs(task, variant)
        for task in evidence.tasks
        for variant in evidence.others
    )
    return ["without a sign: accuracy in percent, no baseline of the same seed"] if alone else []


def _plateaus(evidence: Evidence, task: str) -> tuple[list[str], bool]:
    """Describe who escaped which plateau of a task, and whether every run is past them all."""
    found: dict[str, list[str]] = {}  # who escaped → which plateaus
    for name, line in trivial(evidence, task).items():
        counts = escapes(evidence, task, line)
        if not counts:
            return [], False
        if all(each.escaped == each.n for each in counts.values()):
            continue
        plateau = f"{name} {format_number(line)}"
        if not any(each.escaped for each in counts.values()):
            return [*_told(found), f"no run is past {plateau} by three standard errors"], False
        found.setdefault(_counts(counts), []).append(plateau)
    return _told(found), not found and bool(trivial(evidence, task))


def _told(found: Mapping[str, list[str]]) -> list[str]:
    return [
        f"escaped the plateau{'s' * (len(plateaus) > 1)} {' and '.join(plateaus)}: {counts}"
        for counts, plateaus in found.items()
    ]


def _counts(found: Mapping[str, Escape]) -> str:
    """Spell how many runs of each variant escaped, the largest of several groups as the others."""
    groups: dict[tuple[int, int], list[str]] = {}
    for variant, each in found.items():
        groups.setdefault((each.escaped, each.n), []).append(plain(variant))
    ordered = sorted(groups.items(), key=lambda group: -group[0][0] / group[0][1])
    most = max(groups, key=lambda count: len(groups[count]))
    others = len(groups) > 1 and len(groups[most]) > 2
    text = [
        f"{_spell_count(*count)} of {' · '.join(names)}"
        for count, names in ordered
        if not (others and count == most)
    ]
    return "; ".join([*text, f"{_spell_count(*most)} of the others"] if others else text)


def _spell_count(escaped: int, n: int) -> str:
    if escaped == n:
        return "every run"
    return f"{escaped} of {n} runs" if escaped else "no run"


def _warnings(evidence: Evidence, overall: Mapping[str, Overall]) -> tuple[str, ...]:
    warnings = []
    asked = len(evidence.missing) + sum(len(runs) for runs in evidence.runs.values())
    if evidence.missing:
        cells = dict.fromkeys((m.task, m.variant) for m in evidence.missing)
        named = [f"{plain(variant)} on {task}" for task, variant in list(cells)[:3]]
        more = f" and {len(cells) - 3} more" if len(cells) > 3 else ""
        warnings.append(
            f"{len(evidence.missing)} of {asked} runs have no result yet: {', '.join(named)}{more}"
        )
    least = min((each.n for each in overall.values()), default=0)
    text = too_few(least, comparisons=len(overall)) if least else None
    if text:
        pairs = "pair of runs" if least == 1 else "pairs of runs"
        warnings.append(text.replace("paired seeds", pairs).replace("seeds can", "pairs can"))
    return tuple(warnings)


def _tidy(
    evidence: Evidence,
    single: Mapping[str, Mapping[str, Comparison]],
    overall: Mapping[str, Overall],
    whole: Mapping[str, float],
    untested: bool,
) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    over = "tasks in the mean" if whole else "all tasks"
    for variant in evidence.variants:
        for task in (*evidence.tasks, over):
            each = overall.get(variant) if task == over else single[task].get(variant)
            runs = {} if task == over else evidence.accuracies(task, variant)
            if each is None and not runs:
                continue
            interval = each.interval if each else None
            cell = evidence.runs.get((task, variant), {})
            rows.append(
                {
                    "variant": variant,
                    "task": task,
                    "accuracy": mean(list(runs.values())) if runs else None,
                    "difference": each.mean if each else None,
                    "low": interval.low if interval else None,
                    "high": interval.high if interval else None,
                    "n": each.n if each else len(runs),
                    "p": each.p if each and not untested else None,
                    "p_holm": each.p_holm if each and not untested else None,
                    "runs": " ".join(run.id for _, run in sorted(cell.items())),
                }
            )
        if variant in whole:
            rows.append(
                dict.fromkeys(rows[0])
                | {"variant": variant, "task": "all tasks"}
                | {"difference": whole[variant], "runs": ""}
            )
    return rows
