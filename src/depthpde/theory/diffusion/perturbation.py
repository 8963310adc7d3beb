"""Smoothing before a block changes its output by at most roughness × amplification.

    ‖F(D_r u) − F(u)‖ ≤ Lip(F) · r‖Lu‖ ≤ Lip(F) · 2r √(2E(u))

F is a real pre-norm Transformer block. Its Lipschitz factor is measured where it is needed: the
largest singular value of its dense Jacobian at points of the segment from u to D_r u. That is a
local factor at sampled points, not a global bound. Derivation: docs/equations.md §8.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from depthpde.operators.energy import dirichlet_energy
from depthpde.operators.laplacian import laplacian
from depthpde.seeds import generator
from depthpde.shapes import Field
from depthpde.theory.claim import Check, Claim, ClaimEvidence, Relation
from depthpde.theory.measurement import explicit_step, jacobian_of, random_field, spectral_norm

SITES, FEATURES = 12, 8
POINTS = (0.0, 0.25, 0.5, 0.75, 1.0)
Block = Callable[[Field], Field]


def _block(gain: float = 1.0) -> Block:
    """Build a Transformer block with seeded weights, its matrices multiplied by a gain."""
    # Built empty and filled by hand: the module's own initialisation would use the global seed.
    layer = nn.TransformerEncoderLayer(
        FEATURES, 2, 16, dropout=0.0, batch_first=True, norm_first=True, device="meta"
    )
    layer = layer.to_empty(device="cpu").double().eval().requires_grad_(False)
    source = generator(0, "theory", "perturbation", "block")
    for name, parameter in layer.named_parameters():
        if parameter.ndim == 2:
            parameter.normal_(0.0, gain * parameter.shape[1] ** -0.5, generator=source)
        else:
            parameter.fill_(1.0 if name in ("norm1.weight", "norm2.weight") else 0.0)

    def apply(u: Field) -> Field:
        # The plain kernel has every derivative; the inference fast path has none.
        with sdpa_kernel(SDPBackend.MATH):
            out: Tensor = layer(u)
        return out

    return apply


def _field() -> Field:
    return random_field("perturbation", length=SITES, dim=FEATURES)


def _change(block: Block, ratio: float) -> float:
    u = _field()
    return float((block(explicit_step(u, ratio)) - block(u)).norm())


def _amplification(block: Block, ratio: float) -> float:
    """Measure the largest stretch of the block on the way from u to D_r u."""
    u = _field()
    step = ratio * laplacian(u)
    return max(spectral_norm(jacobian_of(block, u + along * step)) for along in POINTS)


def _move(ratio: float) -> float:
    return float(ratio * laplacian(_field()).norm())


def _energy_bound(ratio: float) -> float:
    return float(2 * ratio * (2 * dirichlet_energy(_field())).sqrt())


def _bounded(name: str, block: Block, ratio: float, amplification: float) -> Check:
    return Check(
        quantity=f"‖F(Du) − F(u)‖, r = {ratio:g}, {name}",
        predicted=amplification * _energy_bound(ratio),
        measured=_change(block, ratio),
        comparison=Relation.AT_MOST,
    )


def _measure() -> ClaimEvidence:
    block = _block()
    checks = []
    for ratio in (0.25, 0.05):
        stretch = _amplification(block, ratio)
        checks.append(_bounded(f"amplification {stretch:.2f}", block, ratio, stretch))
        checks.append(
            Check(
                quantity=f"‖F(Du) − F(u)‖ against the tighter Lip·r‖Lu‖, r = {ratio:g}",
                predicted=stretch * _move(ratio),
                measured=_change(block, ratio),
                comparison=Relation.AT_MOST,
            )
        )
    checks.append(
        Check(
            quantity="‖Du − u‖ before any block, r = 1/4",
            predicted=_energy_bound(0.25),
            measured=float((explicit_step(_field(), 0.25) - _field()).norm()),
            comparison=Relation.AT_MOST,
        )
    )
    return ClaimEvidence(checks=tuple(checks))


CLAIM = Claim(
    name="perturbation",
    statement="Inserting diffusion changes a block's output by at most roughness × amplification.",
    equation="‖F(D_r u) − F(u)‖ ≤ Lip(F) · 2r √(2E(u))",
    source="Paper A v3, layer 2 (compositional perturbation bounds); F is "
    "torch.nn.TransformerEncoderLayer, Lip(F) measured on the segment",
    measure=_measure,
    counterexample="the bound without the amplification, behind a block of large weights",
    refute=lambda: _bounded("amplification left out", _block(gain=6.0), 0.25, 1.0),
)
