"""Beside the claims of placement: is one task the reason, when does the gain come, and where?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from depthpde.pages.formatting import counted, format_interval, format_p, plain, short_tasks, signed
from depthpde.records.contrasts import along, contrast, difference, differences_of, fragility
from depthpde.records.escapes import LEARNED_AT_ONCE, run_escape
from depthpde.records.evidence import Evidence, in_mean, trivial
from depthpde.records.learning_curves import read_validations
from depthpde.records.predictions import gain_by_group, root_arguments
from depthpde.records.scores import scores_of
from depthpde.records.statistics.combination import combined_interval, combined_mean
from depthpde.records.statistics.survival import EscapeTime, kaplan_meier, log_rank_test
from depthpde.records.trivial_lines import below
from depthpde.records.verdicts import Hypothesis, Verdict, judge

Rows = list[dict[str, str]]
LISTOPS = "listops-mini"
GROUPS = ("none of its own", "fewer than half", "at least half")
"""How many of a root's arguments are its own digits."""


def fragile(evidence: Evidence, variant: str, hypothesis: Hypothesis) -> Rows:
    """Judge a claim anew with every task, without those learned at once, and with one fewer."""
    scores = scores_of(evidence)
    if variant not in scores or evidence.baseline not in scores:
        return []
    found = contrast(scores, difference(variant, evidence.baseline))
    inside = {task: each for task, each in found.items() if task in in_mean(evidence)}
    if len(inside) < 3:
        return []
    short = short_tasks(evidence.tasks)
    verdicts = {}
    if len(inside) < len(found):
        verdicts["no task (an interval that counts escapes)"] = judge(
            differences_of(found), hypothesis
        )
        names = " and ".join(short[task] for task in found if task not in inside)
        verdicts[names] = judge(differences_of(inside), hypothesis)
        verdicts |= {
            f"{names} and {short[task]}": each
            for task, each in fragility(inside, hypothesis).items()
        }
    else:
        verdicts["no task"] = judge(differences_of(inside), hypothesis)
        verdicts |= {short[task]: each for task, each in fragility(inside, hypothesis).items()}
    return [{"left out": name} | _row(each) for name, each in verdicts.items()]


def _row(found: Verdict) -> dict[str, str]:
    p = "–" if found.p is None else format_p(found.p)
    numbers = f"{signed(found.effect, 2)} {format_interval(found.interval, 2)}"
    return {"effect [95 %]": numbers, "p": p, "verdict": found.outcome.value}


def along_training(evidence: Evidence, variant: str) -> Rows:
    """Tell the difference on the validation split at each look: does it still grow at the end?"""
    rows: Rows = []
    short = short_tasks(evidence.tasks)
    for task in in_mean(evidence):
        curves: dict[int, dict[str, dict[str, dict[int, float]]]] = {}
        for each in (variant, evidence.baseline):
            for seed, run in evidence.runs.get((task, each), {}).items():
                for update, accuracy in read_validations(run).value:
                    runs = curves.setdefault(update, {}).setdefault(each, {})
                    runs.setdefault(task, {})[seed] = accuracy
        found = along(dict(sorted(curves.items())), difference(variant, evidence.baseline))
        values = {update: differences_of(each) for update, each in found.items()}
        if len(values) > 1:
            steps = [f"{u}: {signed(combined_mean(each), 2)}" for u, each in values.items()]
            last = combined_interval(values[max(values)])
            rows.append(
                {
                    "task": short[task],
                    "update: validation difference": " · ".join(steps),
                    "95 % at the last": format_interval(last, 2),
                }
            )
    return rows


def escape_table(evidence: Evidence) -> Rows:
    """Tell for each variant how many runs left the plateau, when, and the log-rank p."""
    rows: Rows = []
    for task in (each for each in evidence.tasks if each in LEARNED_AT_ONCE):
        times = {each: _times(evidence, task, each) for each in evidence.variants}
        base = times.get(evidence.baseline, {})
        for variant, found in times.items():
            if not found:
                continue
            median = kaplan_meier(list(found.values())).median
            shared = set(found) & set(base) if variant != evidence.baseline else set()
            rows.append(
                {
                    "variant": plain(variant),
                    "left the plateau": f"{sum(t.escaped for t in found.values())} of {len(found)}",
                    "half by update": "–" if median is None else str(median),
                    "log-rank p": format_p(log_rank_test(found, base)) if shared else "–",
                }
            )
    return rows


def line_table(evidence: Evidence) -> Rows:
    """Set the baseline beside what each task gives without any sequence model."""
    rows: Rows = []
    for task, name in short_tasks(evidence.tasks).items():
        reached = list(evidence.accuracies(task, evidence.baseline).values())
        lines = trivial(evidence, task)
        if reached and lines:
            mean = float(np.mean(reached))
            rows.append(
                {
                    "task": name,
                    "baseline": f"{mean:.1f}",
                    "needs no sequence model": spell_lines(lines),
                    "not yet reached": ", ".join(below(mean, lines)) or "–",
                }
            )
    return rows


def spell_lines(lines: Mapping[str, float]) -> str:
    """Write trivial lines in one row, such as ``majority 10.0 · bag of bytes 58.0``."""
    return " · ".join(f"{name} {line:.1f}" for name, line in lines.items())


def _times(evidence: Evidence, task: str, variant: str) -> dict[int, EscapeTime]:
    runs = evidence.runs.get((task, variant), {})
    found = {seed: run_escape(run, LEARNED_AT_ONCE[task]) for seed, run in sorted(runs.items())}
    return {seed: time for seed, time in found.items() if time is not None}


def own_digits(evidence: Evidence, variants: Sequence[str]) -> Rows:
    """Tell where the gain on ListOps lies: by how many of the root's arguments are its own digits.

    The test split is generated again; nothing is told if the runs did not answer these examples.
    """
    predicted = {
        each: {
            seed: classes
            for seed, run in evidence.runs.get((LISTOPS, each), {}).items()
            if (classes := run.predictions()) is not None
        }
        for each in (*variants, evidence.baseline)
    }
    if not all(predicted.values()):
        return []
    from depthpde.data.recipes.listops import MINI, generate

    first, classes = next(iter(predicted[evidence.baseline].items()))
    expressions, labels = generate(len(classes), 0, grammar=MINI)
    right = 100 * float(np.mean(classes == labels))
    if abs(right - evidence.accuracies(LISTOPS, evidence.baseline)[first]) > 1e-6:
        return []
    own, arguments = root_arguments(expressions.tokens, expressions.offsets)
    groups = np.where(own == 0, 0, np.where(2 * own >= arguments, 2, 1))
    rows: Rows = []
    for variant in variants:
        gains = gain_by_group(predicted[variant], predicted[evidence.baseline], labels, groups)
        row = {"variant": plain(variant)}
        for group, each in gains.items():
            values = {GROUPS[group]: list(each.values())}
            head = f"{GROUPS[group]} ({counted(int((groups == group).sum()), 'example')})"
            ends = format_interval(combined_interval(values), 2)
            row[head] = f"{signed(combined_mean(values), 2)} {ends}"
        rows.append(row)
    return rows
