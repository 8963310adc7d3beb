"""Every claim: paper A's (what diffusion is, does and meets), then paper B's on stabilizers."""

from __future__ import annotations

from depthpde.theory.attention import smoothed_weights
from depthpde.theory.claim import Claim
from depthpde.theory.diffusion import (
    adaptive,
    cfl,
    collapse,
    commutation,
    conservation,
    energy_decay,
    gradient_decay,
    gradient_flow,
    heat_kernel,
    maximum_principle,
    multiscale,
    nonexpansive,
    padding,
    perturbation,
    spectrum,
    unconditional,
    upwind,
)
from depthpde.theory.stabilizers import (
    growth_bound,
    normalization,
    rank_collapse,
    residual,
    token_clusters,
)
from depthpde.theory.stencil import maximum as stencil_maximum
from depthpde.theory.stencil import norm as stencil_norm

CLAIMS: dict[str, Claim] = {
    claim.name: claim
    for claim in (
        spectrum.CLAIM,
        cfl.CLAIM,
        nonexpansive.CLAIM,
        maximum_principle.CLAIM,
        conservation.CLAIM,
        padding.CLAIM,
        energy_decay.CLAIM,
        gradient_decay.CLAIM,
        heat_kernel.CLAIM,
        unconditional.CLAIM,
        adaptive.CLAIM,
        multiscale.CLAIM,
        collapse.CLAIM,
        upwind.CLAIM,
        stencil_maximum.CLAIM,
        stencil_norm.CLAIM,
        perturbation.CLAIM,
        commutation.CLAIM,
        smoothed_weights.CLAIM,
        gradient_flow.CLAIM,
        residual.CLAIM,
        normalization.CLAIM,
        rank_collapse.CLAIM,
        token_clusters.CLAIM,
        growth_bound.CLAIM,
    )
}
