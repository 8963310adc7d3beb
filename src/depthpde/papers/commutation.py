"""Does the commutator of diffusion and attention tell beforehand where diffusion will harm?

The runs are those of `placement`: each finished model's record tells its commutators and how far
its layers move the field, and they are set against the change of accuracy.
"""

from __future__ import annotations

import math

from depthpde.papers.experiment import Experiment, by_records
from depthpde.papers.placement import BASELINE, positions
from depthpde.records.diagnostic import foretell
from depthpde.records.evidence import Evidence, lacking
from depthpde.records.findings import JudgedClaim
from depthpde.records.statistics.paired import LEVEL, holm
from depthpde.records.verdicts import Outcome


def claims(evidence: Evidence) -> list[JudgedClaim]:
    """Judge every measure by its correlation with the change of accuracy, corrected together."""
    known = foretell(evidence)
    corrected = holm([each.p for each in known])
    few = [why for each in evidence.others if (why := lacking(evidence, each)) is not None]
    judged = []
    for each, p in zip(known, corrected, strict=True):
        words = (
            f"rank correlation with the change of accuracy, {each.cells} cells of task and position"
        )
        outcome = Outcome.INCONCLUSIVE
        if few or len(known) * each.least_p > LEVEL:
            words += f"; {few[0] if few else 'so few cells cannot tell'}"
        elif p <= LEVEL:
            outcome = Outcome.SUPPORTED if each.correlation < 0 else Outcome.CONTRADICTED
        judged.append(
            JudgedClaim(
                claim=f"{each.claim}.",
                finding=words,
                verdict=outcome,
                n=each.cells,
                effect=each.correlation,
                p=p,
                least=least_correlation(each.cells),
            )
        )
    return judged


def least_correlation(cells: int) -> float | None:
    """Return the correlation that so many cells show with 80 %, by Fisher's z; None below four.

    tanh((1.96 + 0.84) / √(cells − 3))
    """
    return math.tanh((1.959964 + 0.841621) / (cells - 3) ** 0.5) if cells > 3 else None


EXPERIMENT = Experiment(
    name="commutation",
    question="Does the diffusion-attention commutator tell where diffusion will harm?",
    variants=(BASELINE, *positions()),
    conclude=by_records(claims),
)
"""No run that placement does not have."""
