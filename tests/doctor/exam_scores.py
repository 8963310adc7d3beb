"""From the exam's records to its tables: AUROC, macro-F1 by component, false alarms."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from doctor.exam import SETTINGS, changes_function
from doctor.exam_patient import Fault
from doctor.faults import FAULTS
from doctor.zoo import HEALTHY

COMPONENTS = tuple(dict.fromkeys(each.component for each in FAULTS))
HIDDEN_ALONE = {
    "query and key swapped": "the scores are those of another model that may be meant",
    "indices shifted": "a table of positions that begins elsewhere is as good as another",
    "pairs of rows swapped": "which row is which token's is known to nobody but the vocabulary",
    "segment embeddings scaled": "the size of one table is free",
    "logits scaled": "a temperature; the order of the answers is the same",
}
"""Faults that no look at one model can show, decided by reason and not by a result.

They turn a healthy model into one that training could as well have given: rows of a table in
another order, one factor on what has no scale of its own. A reference shows all of them.
"""
WHY = HIDDEN_ALONE | {
    "slow backend forced": "the same function on another path",
    "fallback by dtype": "the same function on another path",
    "chunked path": "the same function on another path",
    "other weight decay": "the function is the same; fifty updates are too few",
    "weight decay on gain and bias": "the function is the same; fifty updates are too few",
    "scores in half precision": "rounding of 1e-3 of small scores",
    "clipped": "where the stream never reaches the threshold",
}
"""Why a fault cannot be seen, where it cannot."""


EXACT = {"cache mismatch", "padding leak", "causal leak", "train and eval differ"}
"""What two calls show that must agree and do not, in float64: no grade of a model's health."""


def is_defect(record: dict[str, Any]) -> bool:
    """Tell whether a library's model is ill of what two calls prove, and of nothing else."""
    ill = {each["condition"] for each in record.get("one batch", ()) if each["grade"] == "ill"}
    return record["fault"] is None and "case" not in record and bool(ill) and ill <= EXACT


def defects(records: list[dict[str, Any]]) -> list[str]:
    """List such models: they are no healthy ones, and are left out of the scores."""
    return sorted(
        f"{each['family']}: {v['condition']}"
        for each in records
        if is_defect(each)
        for v in each["one batch"]
        if v["grade"] == "ill"
    )


def false_alarms(records: list[dict[str, Any]]) -> list[str]:
    """List the healthy models that are called ill, in which setting and of what."""
    return sorted(
        f"{each['family']} ({setting}): {v['condition']}"
        for each in records
        for setting in SETTINGS
        if each.get("fault") is None and setting in each and not is_defect(each)
        for v in each[setting]
        if v["grade"] == "ill"
    )


def output(record: dict[str, Any], setting: str) -> list[dict[str, Any]]:
    """Give the verdicts of a setting; who watches fifty updates has diagnosed one batch before."""
    before = record["one batch"] if setting == "fifty updates" else []
    return [*before, *record[setting]]


def severity(record: dict[str, Any], setting: str) -> float:
    return max((each["severity"] for each in output(record, setting)), default=0.0)


def component(record: dict[str, Any], setting: str) -> str:
    """Give the component of the first ill verdict: causes stand before what follows from them."""
    ill = [each for each in output(record, setting) if each["grade"] == "ill" and each["component"]]
    return str(ill[0]["component"]) if ill else ""


def auroc(ill: Sequence[float], well: Sequence[float]) -> float:
    """Give the chance that a faulty model is graded above a healthy one; ties count half."""
    pairs = sum((a > b) + 0.5 * (a == b) for a in ill for b in well)
    return pairs / max(1, len(ill) * len(well))


def macro_f1(pairs: Sequence[tuple[str, str]]) -> float:
    """Average F1 over the components that were in the exam; a pair is (truth, named)."""
    scores = []
    for name in {truth for truth, _ in pairs if truth}:
        hit = sum(truth == named == name for truth, named in pairs)
        wrong = sum(named == name != truth for truth, named in pairs)
        missed = sum(truth == name != named for truth, named in pairs)
        scores.append(2 * hit / max(1, 2 * hit + wrong + missed))
    return statistics.mean(scores) if scores else 0.0


def visible(record: dict[str, Any], setting: str) -> bool:
    """Tell whether a setting can show a fault in principle."""
    return setting == "against a reference" or record["fault"] not in HIDDEN_ALONE


KINDS = (
    "families at their start",
    "families trained",
    "validation zoo",
    "architectures",
    "pretrained",
)


def kind_of(record: dict[str, Any]) -> str:
    """Name the kind of a healthy model."""
    if "case" in record:
        return KINDS[1] if record["case"] % 2 else KINDS[0]
    if record["family"].endswith(("(causal)", "(masked)", "(vision)")):
        return KINDS[3]
    return KINDS[2] if record["family"] in {each.name for each in HEALTHY} else KINDS[4]


def alarms_by_kind(records: list[dict[str, Any]]) -> list[str]:
    """Count the healthy models of each kind that one batch calls ill."""
    well = [e for e in records if e.get("fault") is None and "one batch" in e and not is_defect(e)]
    found = []
    for kind in KINDS:
        ill = [any(v["grade"] == "ill" for v in e["one batch"]) for e in well if kind_of(e) == kind]
        found += [f"{kind}: {sum(ill)} of {len(ill)}"] if ill else []
    return found


def summary(records: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Score every setting, for all families, for those of the calibration and for the others."""
    found: dict[str, dict[str, float]] = {}
    for setting in SETTINGS:
        known = [
            each
            for each in records
            if setting in each and "applies" not in each and not is_defect(each)
        ]
        well = [each for each in known if each["fault"] is None]
        for part in ("all", "seen", "unseen"):
            some = [each for each in known if part == "all" or each["seen"] is (part == "seen")]
            ill = [each for each in some if each["fault"] and changes_function(each["change"])]
            pairs = [(each["component"], component(each, setting)) for each in ill]
            pairs += [("", component(each, setting)) for each in well]
            scores = [severity(each, setting) for each in well]
            shown = [each for each in ill if visible(each, setting)]
            alarms = [any(v["grade"] == "ill" for v in output(each, setting)) for each in well]
            found[f"{setting}, {part}"] = {
                "faulty": len(ill), "healthy": len(well),
                "auroc": auroc([severity(e, setting) for e in ill], scores),
                "visible": auroc([severity(e, setting) for e in shown], scores),
                "macro-F1": macro_f1(pairs),
                "found": statistics.mean(component(e, setting) != "" for e in ill) if ill else 0.0,
                "false alarms": statistics.mean(alarms) if alarms else 0.0,
            }  # fmt: skip
    return found


def seen_alone(records: list[dict[str, Any]]) -> str:
    """Count what one batch alone shows of the faults that change the function, in a sentence."""
    ill = [
        each
        for each in records
        if each.get("fault") and "applies" not in each and changes_function(each["change"])
    ]
    hidden = [each for each in ill if not visible(each, "one batch")]
    named = [each for each in ill if component(each, "one batch")]
    both = sum(each in hidden for each in named)
    cap = 1 - len(hidden) / (2 * max(1, len(ill)))
    return (
        f"{len(ill)} faults change the function. One batch alone names {len(named)} of them ill: "
        f"{len(named) - both} of the {len(ill) - len(hidden)} that one model can show, and {both} "
        f"of the {len(hidden)} that it cannot. With those {len(hidden)} at chance AUROC is at most "
        f"{cap:.3f}."
    )


def table(records: list[dict[str, Any]]) -> str:
    """Write the scores and the faults as Markdown."""
    names = ("setting", "families", "faulty", "healthy", "AUROC", "of what can be seen",
             "named ill", "macro-F1 by component", "false alarms")  # fmt: skip
    lines = [_row(names), "|---" * len(names) + "|"]
    for name, row in summary(records).items():
        setting, part = name.rsplit(", ", 1)
        shares = (
            f"{row['auroc']:.3f}", f"{row['visible']:.3f}", f"{row['found']:.0%}",
            f"{row['macro-F1']:.2f}",
        )  # fmt: skip
        counts = (f"{row['faulty']:.0f}", f"{row['healthy']:.0f}")
        lines.append(_row((setting, part, *counts, *shares, f"{row['false alarms']:.1%}")))
    names = ("component", "fault", "cases", "change the function", *SETTINGS)
    lines += ["", _row(names), "|---" * len(names) + "|"]
    for fault in FAULTS:
        cases = cases_of(records, fault)
        moved = sum(changes_function(each["change"]) for each in cases)
        named = [sum(component(each, s) != "" for each in cases if s in each) for s in SETTINGS]
        lines.append(_row((fault.component, fault.name, len(cases), moved, *named)))
    return "\n".join(lines)


def _row(cells: Sequence[object]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def cases_of(records: list[dict[str, Any]], fault: Fault) -> list[dict[str, Any]]:
    """Give the records of one fault."""
    return [
        each
        for each in records
        if each.get("fault") == fault.name
        and each["component"] == fault.component
        and "applies" not in each
    ]


def hidden_alone(records: list[dict[str, Any]]) -> list[str]:
    """List the faults that change the function and that one batch alone does not show, and why."""
    found = []
    for fault in FAULTS:
        cases = [each for each in cases_of(records, fault) if changes_function(each["change"])]
        seen = [component(each, "one batch") != "" for each in cases]
        if cases and sum(seen) < len(seen) / 2:
            found.append(f"{fault.component}, {fault.name}: {WHY.get(fault.name, 'not known')}")
    return found


def invisible(records: list[dict[str, Any]]) -> list[str]:
    """List the faults that no setting finds in most of their cases, and why where it is known."""
    found = []
    for fault in FAULTS:
        cases = cases_of(records, fault)
        seen = [any(component(each, s) for s in SETTINGS if s in each) for each in cases]
        if cases and sum(seen) < len(seen) / 2:
            found.append(f"{fault.component}, {fault.name}: {WHY.get(fault.name, 'not known')}")
    return found
