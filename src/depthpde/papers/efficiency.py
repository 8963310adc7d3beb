"""What do the positions and layers cost in time, memory and parameters, by length?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from depthpde.errors import check_positive
from depthpde.papers.experiment import Case, Conclusion, Experiment, JudgedBy
from depthpde.papers.placement import CONTROLS, positions
from depthpde.records.evidence import Evidence
from depthpde.records.findings import Findings, JudgedClaim
from depthpde.records.verdicts import Outcome
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
        claims=claims(rows, rounds),
        tables={"cost against nothing placed (training step)": rows},
        notes=(f"8,192 tokens a step, two blocks of width 64, on {device()}",),
    )


def _variants() -> dict[str, Mapping[str, Any]]:
    rows = [*positions(), *(each for each in CONTROLS if each.label != "rotary")]
    return {each.label: each.model for each in rows} | {"after embedding, mixed": MULTISCALE}


def claims(rows: Sequence[Mapping[str, Any]], rounds: int) -> tuple[JudgedClaim, ...]:
    """Judge the cost after the embedding, and of all that is placed, by the largest ratio."""
    ours = [row for row in rows if not str(row["variant"]).startswith(("conv", "fixed"))]
    asked = {
        "Paper A: diffusion after the embedding costs little time and memory.": [
            row for row in ours if row["variant"] == "after embedding"
        ],
        "Diffusion costs little time and memory at every position and as a mix of scales.": ours,
    }
    return tuple(_claim(claim, mine, rounds) for claim, mine in asked.items())


def _claim(claim: str, rows: Sequence[Mapping[str, Any]], rounds: int) -> JudgedClaim:
    slowest = max(rows, key=lambda row: row["time"])
    widest = max(rows, key=lambda row: row["memory"])
    dearest = max(slowest["time"], widest["memory"])
    return JudgedClaim(
        claim=claim,
        finding=(
            f"at most {slowest['time']:.2f} × the time ({slowest['variant']}, length "
            f"{slowest['length']}) and {widest['memory']:.2f} × the memory ({widest['variant']}); "
            f"little is at most {SMALL:.2f} ×, our mark; medians of one machine, no interval"
        ),
        verdict=Outcome.SUPPORTED if dearest <= SMALL else Outcome.INCONCLUSIVE,
        n=rounds,
        effect=dearest - 1,
    )


def rejudge(stored: Findings, evidence: Evidence | None) -> Findings:
    """Judge anew what was measured: the rows are all that is kept of a machine's measurements."""
    rows = next(iter(stored.tables.values()), ())
    rounds = stored.claims[0].n if stored.claims else 0
    return replace(stored, claims=claims(rows, rounds)) if rows else stored


EXPERIMENT = Experiment(
    name="efficiency",
    question="What do the positions and layers cost in time, memory and parameters, by length?",
    judged_by=JudgedBy.MACHINE,
    fixed_tasks=True,
    conclude=conclude,
    rejudge=rejudge,
)
