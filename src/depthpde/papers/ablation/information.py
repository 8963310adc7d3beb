"""The information plane of the ablation, by two estimators, and where it can be believed.

neighbours    k nearest in two principal components: the whole information of a part
slices        the mean over random directions: a part of the information of the whole
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from depthpde.papers.ablation.variants import (
    BOTH,
    NEITHER,
    STABILIZERS,
    TRANSFORMER,
    Ablation,
    Measured,
    label,
)
from depthpde.papers.claims import Judged, number_claim, spread
from depthpde.records.findings import JudgedClaim

PLANE = "information plane, Transformer (nats, two principal components)"
SLICED = "sliced information plane, Transformer (nats, mean over random directions)"
"""Titles of the two tables."""
WHEN = {"start": "untrained", "end": "trained"}


def information_claims(found: Ablation) -> list[Judged | JudgedClaim]:
    """Judge what the stabilizers do to the information about the label."""
    variants = {name: label(TRANSFORMER, name) for name in STABILIZERS}

    def last_layer(measured: Measured) -> float | None:
        layers = measured.at("end").get("information")
        return None if not layers or layers[-1]["label_unreliable"] else layers[-1]["about_label"]

    kept = found.pairs(variants[BOTH], variants[NEITHER], last_layer)
    doubtful = sum(
        bool(layer["label_unreliable"])
        for measured in found.runs.values()
        for layer in (measured.at("end").get("information") or ())
    )
    return [
        number_claim(
            "Paper B: stabilizers keep information about the label through depth",
            "the last layer tells {mean:+.2f} nats more of the label with both than with neither, "
            f"on {', '.join(kept) or 'no task'} (k-nearest neighbours; {doubtful} estimates of all "
            "layers and runs failed a self-check and are left out)",
            kept,
        )
    ]


def plane_table(found: Ablation) -> list[dict[str, Any]]:
    """Lay out the information plane: first and last layer, before and after training."""
    rows = []
    for name in STABILIZERS:
        runs = found.of(label(TRANSFORMER, name)).values()
        for when in ("start", "end"):
            layers = [m.at(when).get("information") for m in runs]
            known = [each for each in layers if each]
            if not known:
                continue
            for depth in (0, len(known[0]) // 2, -1):
                at = [each[depth] for each in known]
                rows.append(
                    {
                        "stabilizer": name,
                        "when": "untrained" if when == "start" else "trained",
                        "layer": depth % len(known[0]),
                        "I(X;T)": spread([each["about_input"] for each in at]),
                        "I(T;Y)": spread([each["about_label"] for each in at]),
                        "unreliable (X;T)": _failed(at, "input_unreliable"),
                        "unreliable (T;Y)": _failed(at, "label_unreliable"),
                    }
                )
    return rows


def sliced_table(found: Ablation) -> list[dict[str, Any]]:
    """Lay out the sliced information plane: first, middle and last layer.

    SI(X;T) is shown as a share of SI(X;X): a direction sees a part of what the whole holds.
    """
    rows = []
    for name in STABILIZERS:
        runs = found.of(label(TRANSFORMER, name)).values()
        for when, words in WHEN.items():
            known = [layers for m in runs if (layers := m.sliced_layers(when))]
            for k, layer in enumerate(known[0] if known else ()):
                at = [each[k] for each in known]
                shares = [_share(each, k) for each in known]
                rows.append(
                    {
                        "stabilizer": name,
                        "when": words,
                        "layer": layer["layer"],
                        "runs": len(at),
                        "SI(X;T) / SI(X;X)": spread([each for each in shares if each is not None]),
                        "SI(T;Y)": spread([each["label"]["value"] for each in at]),
                        "beyond its null (T;Y)": _count(at, "label", "detected"),
                        "unreliable (X;T)": _count(at, "input", "unreliable"),
                        "unreliable (T;Y)": _count(at, "label", "unreliable"),
                    }
                )
    return rows


def where_believed(found: Ablation) -> str:
    """Describe in one line how many estimates of the plane pass their self-checks, and where.

    Counted over all runs and layers that were measured.
    """
    counts: dict[tuple[str, str], list[bool]] = {}
    for measured in found.runs.values():
        for when, words in WHEN.items():
            for depth, each in enumerate(measured.at(when).get("information") or ()):
                place = "at the first layer" if depth == 0 else "behind it"
                counts.setdefault(("I(X;T)", place), []).append(not each["input_unreliable"])
                counts.setdefault(("I(T;Y)", words), []).append(not each["label_unreliable"])
            for each in measured.sliced_layers(when):
                for side, name in (("input", "SI(X;T)"), ("label", "SI(T;Y)")):
                    counts.setdefault((name, words), []).append(not each[side]["unreliable"])
    if not counts:
        return "the information plane was not estimated"
    words = ", ".join(
        f"{name} {place} {sum(passed):,} of {len(passed):,}"
        for (name, place), passed in sorted(counts.items())
    )
    sliced = {
        when: [task for (task, _, _), each in found.runs.items() if each.sliced_layers(when)]
        for when in WHEN
    }
    where = ", ".join(sorted({*sliced["start"], *sliced["end"]})) or "no task"
    return (
        "where the information plane can be believed, in estimates that pass their self-check: "
        f"{words}; sliced estimates (SI) show whether anything is known, not how much, and are of "
        f"{len(sliced['start'])} untrained and {len(sliced['end'])} trained models of "
        f"{len(found.runs)} runs, on {where}"
    )


def _share(layers: Sequence[Mapping[str, Any]], k: int) -> float | None:
    """Return SI(X;T) of the k-th estimate over SI(X;X); None where X itself is not detected."""
    own = layers[0]["input"]
    return layers[k]["input"]["value"] / own["value"] if own["detected"] else None


def _count(layers: Sequence[Mapping[str, Any]], side: str, check: str) -> str:
    return f"{sum(bool(each[side][check]) for each in layers)}/{len(layers)}"


def _failed(layers: Sequence[dict[str, Any]], check: str) -> str:
    return f"{sum(bool(each[check]) for each in layers)}/{len(layers)}"
