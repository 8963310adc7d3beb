"""What stands beside the claims of a grid: what its layers became, and how far one task decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from depthpde.pages.formatting import format_interval, plain, short_tasks, signed
from depthpde.records.contrasts import contrast, difference, differences_of
from depthpde.records.escapes import LEARNED_AT_ONCE
from depthpde.records.evidence import Evidence, in_mean
from depthpde.records.learned_filters import BANDS, learned_ratios, learned_weights, start_and_bound
from depthpde.records.probes import measured_bands
from depthpde.records.record import Record
from depthpde.records.run_model import placements
from depthpde.records.scores import Scores, scores_of
from depthpde.records.statistics.combination import combined_interval, combined_mean
from depthpde.records.statistics.paired import mean

Rows = list[dict[str, str]]


def extra_tables(evidence: Evidence) -> dict[str, Rows]:
    """Return the tables beside the claims, title → rows; what has nothing to show is left out."""
    found = {
        "what the layers became (over features, blocks, runs and tasks)": learned_values(evidence),
        "where diffusion went when several positions had it at once": learned_placement(evidence),
        "mean difference when one task is left out": left_out(evidence),
    }
    return {title: rows for title, rows in found.items() if rows}


def difference_table(evidence: Evidence, head: str, pairs: Mapping[str, tuple[str, str]]) -> Rows:
    """Lay out differences of two variants each: by task, and their mean with its interval.

    Args:
        evidence: The finished runs.
        head: What the rows differ in.
        pairs: Name of a row → variant, and what it is compared with.
    """
    scores, short = scores_of(evidence), short_tasks(evidence.tasks)
    found = {name: difference_row(scores, short, pair) for name, pair in pairs.items()}
    return [{head: name} | row for name, row in found.items() if row]


def difference_row(
    scores: Scores, short: Mapping[str, str], pair: tuple[str, str]
) -> dict[str, str]:
    """Spell the difference of two variants: by task, and its mean with its interval.

    A task that is learned at once or not yet has a difference and no part in the mean. Nothing is
    spelt where the two share no run.

    Args:
        scores: What every run reached.
        short: Task → the head of its column.
        pair: The variant, and what it is compared with.
    """
    if not all(each in scores for each in pair):
        return {}
    found = contrast(scores, difference(*pair))
    by_task = {short[task]: signed(mean(each)) for task, each in differences_of(found).items()}
    if inside := differences_of(found, without=LEARNED_AT_ONCE):
        interval = format_interval(combined_interval(inside))
        by_task["mean Δ [95 %]"] = f"{signed(combined_mean(inside))} {interval}"
    return by_task


def learned_values(evidence: Evidence) -> Rows:
    """Tell ratios, weights and the energy kept by band of every variant with one learned layer."""
    rows: Rows = []
    for variant in evidence.others:
        records = evidence.records(variant)
        ratios = [each for values in learned_ratios(records).values() for each in values]
        if not ratios or len(placements(records[0].config)) != 1:
            continue
        start, bound = start_and_bound(records[0].config)
        row: dict[str, str] = {
            "variant": plain(variant),
            "ratio": f"{mean(ratios):.3f}",
            "from … to": f"{min(ratios):.3f} … {max(ratios):.3f}",
            "start, bound": "" if start is None else f"{start:g}, {bound:g}",
            "weights": _weights(records),
        }
        rows.append(row | _kept(records))
    if not any(row["weights"] for row in rows):
        rows = [{name: each for name, each in row.items() if name != "weights"} for row in rows]
    return rows


def learned_placement(evidence: Evidence) -> Rows:
    """Describe what ratio each position learned where several were there at once, largest first."""
    rows: Rows = []
    for variant in evidence.others:
        records = evidence.records(variant)
        if not records or len(placements(records[0].config)) < 2:
            continue
        found: dict[str, list[float]] = {}
        for site, values in learned_ratios(records).items():
            found.setdefault(plain(site.position), []).extend(values)
        start, bound = start_and_bound(records[0].config)
        rows += [
            {
                "variant": plain(variant),
                "position": place,
                "ratio": f"{mean(values):.3f}",
                "from … to": f"{min(values):.3f} … {max(values):.3f}",
                "start, bound": "" if start is None else f"{start:g}, {bound:g}",
            }
            for place, values in sorted(found.items(), key=lambda row: -mean(row[1]))
        ]
    return rows


def left_out(evidence: Evidence) -> Rows:
    """Tell every variant's mean difference over all tasks of the mean but one: does one decide?"""
    inside = in_mean(evidence)
    if len(inside) < 3:
        return []
    short = short_tasks(evidence.tasks)
    return [
        {"variant": plain(variant)}
        | {
            f"without {short[task]}": _without(evidence, variant, [t for t in inside if t != task])
            for task in inside
        }
        for variant in evidence.others
    ]


def _without(evidence: Evidence, variant: str, tasks: Sequence[str]) -> str:
    """Spell the mean difference of a variant over some tasks; no p, which would take longest."""
    pairs = {task: list(evidence.pairs(task, variant).values()) for task in tasks}
    known = {task: each for task, each in pairs.items() if each}
    if not known:
        return "…"
    return f"{signed(combined_mean(known))} {format_interval(combined_interval(known))}"


def _weights(records: Sequence[Record]) -> str:
    """Spell the mean weight of every scale of a mix; of a gated one, where the gate is silent."""
    found = learned_weights(records)
    return ", ".join(f"{name} {mean(values):.2f}" for name, values in found.items())


def _kept(records: Sequence[Record]) -> dict[str, str]:
    """Tell which share of the energy of each band comes out of the layers."""
    shares: list[list[float]] = []
    for energies in measured_bands(records).values():
        before, after = energies.get("before"), energies.get("after")
        if before and after and all(each > 0 for each in before):
            shares.append([b / a for a, b in zip(before, after, strict=True)])
    return {
        f"keeps {band}": f"{mean(list(each)):.2f}" if each else "–"
        for band, each in zip(BANDS, zip(*shares, strict=True) if shares else [()] * 4, strict=True)
    }
