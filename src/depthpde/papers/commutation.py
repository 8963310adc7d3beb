"""Does the commutator of diffusion and attention tell beforehand where diffusion will harm?

The runs are those of `placement`: each finished model's record tells its commutators and how far
its layers move the field, and they are set against the change of accuracy.
"""

from __future__ import annotations

from depthpde.pages.formatting import signed
from depthpde.papers.experiment import Experiment, by_records
from depthpde.papers.placement import BASELINE, positions
from depthpde.records.diagnostic import foretell
from depthpde.records.evidence import Evidence, lacking
from depthpde.records.findings import FindingVerdict, JudgedClaim
from depthpde.records.statistics.paired import LEVEL, holm


def claims(evidence: Evidence) -> list[JudgedClaim]:
    """Judge every measure by its correlation with the change of accuracy."""
    judged = []
    known = foretell(evidence)
    corrected = holm([each.p for each in known])
    few = [why for each in evidence.others if (why := lacking(evidence, each)) is not None]
    for each, p in zip(known, corrected, strict=True):
        words = (
            f"rank correlation with the change of accuracy {signed(each.correlation, 2)} "
            f"over {each.cells} cells of task and position"
        )
        if few or len(known) * each.least_p > LEVEL:
            verdict = FindingVerdict.UNDECIDED
            words = f"{words}; {few[0] if few else 'so few cells cannot tell'}"
        elif p <= LEVEL and each.correlation < 0:
            verdict = FindingVerdict.CONFIRMED
        else:
            verdict = FindingVerdict.NOT_CONFIRMED
        judged.append(
            JudgedClaim(claim=f"{each.claim}.", finding=words, verdict=verdict, n=each.cells, p=p)
        )
    return judged


EXPERIMENT = Experiment(
    name="commutation",
    question="Does the diffusion-attention commutator tell where diffusion will harm?",
    variants=(BASELINE, *positions()),
    conclude=by_records(claims),
)
"""No run that placement does not have."""
