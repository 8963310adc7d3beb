"""Normalization keeps an energy: conserved on the sphere and by post-norm, bounded by pre-norm.

projection   ‖Π u‖ = √dim,    d/dt ‖u‖² = 2⟨u, P_u F(u)⟩ = 0
post-norm    ‖S(u + F(u))‖ = √dim
pre-norm     ‖u_L‖ ≤ ‖u_0‖ + L · max ‖F(Su)‖        grows at most linearly in depth
no norm      ‖u_L‖ ≤ ‖u_0‖ Π_l (1 + ‖F(u_l)‖/‖u_l‖)    a product, which linear maps reach
"""

from __future__ import annotations

import math

import torch

from depthpde.operators.interaction import attention_weights
from depthpde.operators.stabilizer import rms_norm
from depthpde.seeds import generator
from depthpde.shapes import Field
from depthpde.simulator.equation import Equation, Projection
from depthpde.solvers.integrate import integrate
from depthpde.solvers.tolerance import Tolerance
from depthpde.theory.claim import Check, Claim, ClaimEvidence, LineRole, Plot, Relation, line
from depthpde.theory.measurement import random_field

DEPTH, SITES, FEATURES, GAIN = 24, 16, 8, 1.2


def _force(u: Field) -> Field:
    draw = generator(0, "theory", "normalization")
    weights = torch.randn(FEATURES, FEATURES, generator=draw, dtype=torch.float64)
    return GAIN * (attention_weights(u, u) @ u @ (weights / math.sqrt(FEATURES)) + u)


def _start() -> Field:
    return rms_norm(random_field("normalization", length=SITES, dim=FEATURES))


def _sphere_drift() -> Check:
    """Follow the tangent rate without bringing anything back, and see how far the norm drifts."""
    equation = Equation(interaction=_force, stabilizer=Projection(kind="rms"))
    u0 = _start()
    path = integrate(
        list(equation.terms(u0)), u0, (0.0, 4.0), method="adams", tolerance=Tolerance(rtol=1e-10)
    )
    sizes = path.final.norm(dim=-1) / u0.norm(dim=-1)
    return Check(
        quantity="drift of ‖u(x)‖ along the projected flow, nothing brought back, rtol 1e-10",
        predicted=0.0,
        measured=float((sizes - 1).abs().max()),
        comparison=Relation.AT_MOST,
        tolerance=1e-8,
    )


def _projected() -> Check:
    """Bring a field to both spheres, and see how far any site is from its radius."""
    u = random_field("normalization/far", length=SITES, dim=FEATURES) * 7 + 3
    missed = [
        float((Projection(kind=kind).project(u).norm(dim=-1) / math.sqrt(FEATURES) - 1).abs().max())
        for kind in ("rms", "layer")
    ]
    return Check(
        quantity="distance of ‖Π u(x)‖ from √dim, RMS and layer norm as projections",
        predicted=0.0,
        measured=max(missed),
        comparison=Relation.AT_MOST,
        tolerance=1e-12,
    )


def _drift_order() -> Check:
    """Halve fixed steps of the projected flow: the norm drifts at the integrator's order."""
    equation, u0 = Equation(interaction=_force, stabilizer=Projection(kind="rms")), _start()
    drifts = []
    for steps in (16, 32):
        end = integrate(
            list(equation.terms(u0)), u0, (0.0, 1.0), method="heun", substeps=steps
        ).final  # fmt: skip
        drifts.append(float((end.norm(dim=-1) / u0.norm(dim=-1) - 1).abs().max()))
    return Check(
        quantity="order at which the drift of ‖u(x)‖ falls with the step, Heun",
        predicted=2.0,
        measured=math.log2(drifts[0] / drifts[1]),
        comparison=Relation.AT_LEAST,
        tolerance=0.2,
    )


def _product() -> Check:
    """Predict ‖u_L‖ without a norm: I + F has eigenvalues 1 + λ where F is linear."""
    draw = generator(0, "theory", "normalization/linear")
    weights = torch.randn(FEATURES, FEATURES, generator=draw, dtype=torch.float64)
    symmetric = GAIN * (weights + weights.mT) / math.sqrt(8 * FEATURES)
    values, vectors = torch.linalg.eigh(symmetric)
    u = vectors[:, -1].expand(1, SITES, FEATURES)
    for _ in range(DEPTH):
        u = u + u @ symmetric
    return Check(
        quantity=f"log10 growth of ‖u‖ through {DEPTH} blocks without a norm, linear F",
        predicted=DEPTH * math.log10(1 + float(values[-1])),
        measured=math.log10(float(u.norm()) / math.sqrt(SITES)),
        tolerance=1e-9,
    )


def _post_norm() -> Check:
    u = _start()
    for _ in range(DEPTH):
        u = rms_norm(u + _force(u))
    return Check(
        quantity=f"change of ‖u‖ through {DEPTH} post-norm blocks, relative",
        predicted=0.0,
        measured=abs(float(u.norm() / _start().norm()) - 1),
        comparison=Relation.AT_MOST,
        tolerance=1e-4,  # the norm's own ε
    )


def _sizes(*, norm: bool) -> tuple[list[float], list[float]]:
    """Give ‖u_l‖ by depth, and the linear bound ‖u_0‖ + l · max‖F(S u)‖ that pre-norm keeps."""
    u = _start()
    sizes, pushes = [float(u.norm())], [0.0]
    for _ in range(DEPTH):
        pushes.append(float(_force(rms_norm(u)).norm()))
        u = u + _force(rms_norm(u) if norm else u)
        sizes.append(float(u.norm()))
    largest = max(pushes)
    return sizes, [sizes[0] + depth * largest for depth in range(DEPTH + 1)]


def _linear(*, norm: bool) -> Check:
    sizes, bounds = _sizes(norm=norm)
    name = "pre-norm" if norm else "no norm"
    return Check(
        quantity=f"largest ‖u_l‖ over its linear bound, {DEPTH} blocks, {name}",
        predicted=1.0,
        measured=max(size / bound for size, bound in zip(sizes[1:], bounds[1:], strict=True)),
        comparison=Relation.AT_MOST,
    )


def _plot() -> Plot:
    depth = list(range(DEPTH + 1))
    bounded, bounds = _sizes(norm=True)
    return Plot(
        title="Pre-norm grows linearly in depth, no norm like a product",
        x_label="block",
        y_label="‖u‖",
        series=(
            line("pre-norm", depth, bounded),
            line("its bound", depth, bounds, LineRole.FORMULA),
            line("no norm", depth, _sizes(norm=False)[0], LineRole.WARNING),
        ),
        description="The norm of the field by depth: pre-norm stays below a straight line, without "
        "a norm it grows exponentially.",
        log_y=True,
    )


CLAIM = Claim(
    name="normalization",
    statement="Normalization conserves the field's energy, or bounds its growth linearly in depth.",
    equation="d/dt ‖u‖² = 0;  ‖u_L‖ ≤ ‖u_0‖ + L max‖F(Su)‖",
    source="Paper B, S(u) (LayerNorm)",
    measure=lambda: ClaimEvidence(
        checks=(
            _linear(norm=True),
            _projected(),
            _sphere_drift(),
            _drift_order(),
            _post_norm(),
            _product(),
        ),
        plots=(_plot(),),
    ),
    counterexample="the same blocks without a norm",
    refute=lambda: _linear(norm=False),
)
