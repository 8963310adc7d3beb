"""What do the positions and layers cost in time, memory and parameters, by length?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from depthpde.errors import check_positive
from depthpde.papers.experiment import Case, Conclusion, Experiment, JudgedBy
from depthpde.papers.placement import CONTROLS, positions
from depthpde.records.findings import FindingVerdict, JudgedClaim
from depthpde.sweeps.scale import Scale

SMALL = 1.10
"""A ratio up to this is called a small overhead."""
LENGTHS = {Scale.QUICK: (64,), Scale.MINI: (256, 1024, 2048), Scale.FULL: (1024, 4096, 16384)}
ROUNDS = {Scale.QUICK: 3, Scale.MINI: 11, Scale.FULL: 15}
MULTISCALE = {"positions": ("after_embedding",), "layer": "multiscale"}


def conclude(case: Case) -> Conclusion:
    """Measure all variants against the baseline on this machine, and judge."""
    from depthpde.papers.measurements.cost import device, measure

    scale = Scale(case.scale)
    rounds = check_positive("seeds", ROUNDS[scale] if case.rounds is None else case.rounds)
    rows: list[dict[str, Any]] = []
    for length in LENGTHS[scale]:
        for label, changes in _variants().items():
            rows.append({"length": length, "variant": label, **measure(changes, length, rounds)})
            case.log(f"length {length}, {label}: {rows[-1]['time']:.3f} times as long")
    return Conclusion(
        claims=(_claim(rows, rounds),),
        tables={"cost against nothing placed (training step)": rows},
        notes=(f"8,192 tokens a step, two blocks of width 64, on {device()}",),
    )


def _variants() -> dict[str, Mapping[str, Any]]:
    rows = [*positions(), *(each for each in CONTROLS if each.label != "rotary")]
    return {each.label: each.model for each in rows} | {"after embedding, mixed": MULTISCALE}


def _claim(rows: Sequence[Mapping[str, Any]], rounds: int) -> JudgedClaim:
    ours = [row for row in rows if not str(row["variant"]).startswith(("conv", "fixed"))]
    dear = [row for row in ours if max(row["time"], row["memory"]) > SMALL]
    first = [row for row in ours if row["variant"] == "after embedding"]
    slowest = max(ours, key=lambda row: row["time"])
    widest = max(ours, key=lambda row: row["memory"])
    cheap = all(max(row["time"], row["memory"]) <= SMALL for row in first)
    verdict = (
        FindingVerdict.CONFIRMED
        if not dear
        else FindingVerdict.PARTLY
        if cheap
        else FindingVerdict.NOT_CONFIRMED
    )
    return JudgedClaim(
        claim="Paper A: diffusion costs little time and memory.",
        finding=(
            f"after embedding at most {max(row['time'] for row in first):.2f} × the time and "
            f"{max(row['memory'] for row in first):.2f} × the memory; the dearest are "
            f"{slowest['variant']} at length {slowest['length']} ({slowest['time']:.2f} × the "
            f"time) and {widest['variant']} ({widest['memory']:.2f} × the memory); "
            f"small is at most {SMALL:.2f} ×"
        ),
        verdict=verdict,
        n=rounds,
    )


EXPERIMENT = Experiment(
    name="efficiency",
    question="What do the positions and layers cost in time, memory and parameters, by length?",
    judged_by=JudgedBy.MACHINE,
    fixed_tasks=True,
    conclude=conclude,
)
