"""Equation: a named sum of terms, each of which can be switched off.

    u_t = α L u  +  A[S u]  +  R(S u)  +  λ (u_0 − u)  +  f(u, t)
          diffusion interaction reaction  fidelity         source

What the stabilizer does to a term F is written as a rate, so that every integrator can step it and
one Euler step of dt = 1 is exactly what a Transformer does:

    pre-norm       F(S u)                        u ← u + F(S u)
    post-norm      S(u + F(u)) − u               u ← S(u + F(u))
    no norm        F(u)                          u ← u + F(u)
    no residual    the same with F alone − u     u ← F(S u)
    projection     P_u F(u)                      u ← Π(u + F(u)),    P_u: onto the tangent plane
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, TypeAlias

import torch
from torch import Tensor, nn

from depthpde.config import Range, Settings
from depthpde.errors import (
    check_flag,
    check_grid,
    check_name,
    check_one_of,
    check_positive,
    check_range,
    check_tensor,
    check_whole,
    is_number,
    shown,
)
from depthpde.layers.stabilizer import Norm, NormKind, Stabilizer
from depthpde.operators.boundary import Boundary
from depthpde.operators.stabilizer import layer_norm, project_to_sphere, remove_mean, rms_norm
from depthpde.shapes import Field, Mask
from depthpde.simulator.depth import Interpolated
from depthpde.solvers.term import (
    Rhs,
    Term,
    add_terms,
    diffusion_term,
    plane_term,
    transport_term,
)

Map: TypeAlias = Callable[..., Tensor]
"""Takes a field, and gives one of the same shape."""
Maps: TypeAlias = Map | Sequence[Map] | nn.ModuleList | Interpolated | None
"""One map for all time, one for each layer, or weights interpolated in depth."""

TERMS = ("diffusion", "interaction", "reaction", "fidelity", "source")
"""The terms, in the order of their turns."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Projection(Settings):
    """Keep every site on a sphere: the norm as a constraint instead of a layer.

        u_t = P_u F(u),    ‖u(x)‖ = radius,    P_u v = v − ⟨v, u⟩ u / ‖u‖²

    The rate is made tangent, and every step is brought back to the sphere, which keeps the order of
    the integrator. Padding stays where it is. Learns nothing.

    >>> equation = dp.Equation(interaction=dp.Attention(8, 2), stabilizer=dp.Projection(kind="rms"))
    """

    kind: NormKind | str = NormKind.LAYER
    """The sphere of the layer norm (mean-free) or of the RMS norm."""
    radius: Annotated[float, Range(1e-12, 1e12)] | None = None
    """√dim unless given."""

    def project(self, u: Field, valid_mask: Mask | None = None) -> Field:
        """Move every real site to the nearest point of the sphere."""
        centred = self._centre(u)
        if valid_mask is None:
            return project_to_sphere(centred, radius=self.radius)
        real = valid_mask[..., None]
        # Padding is often zero, the centre, which has no nearest point: its gradient is no number.
        moved = project_to_sphere(torch.where(real, centred, 1.0), radius=self.radius)
        return torch.where(real, moved, u)

    def tangent(self, u: Field, rate: Field, valid_mask: Mask | None = None) -> Field:
        """Take from a rate what would leave the sphere; padding has none left."""
        rate = self._centre(rate)
        if valid_mask is not None:
            real = valid_mask[..., None]
            u, rate = torch.where(real, u, 1.0), torch.where(real, rate, 0.0)
        along = (rate * u).sum(dim=-1, keepdim=True) / u.square().sum(dim=-1, keepdim=True)
        return rate - along * u

    def _centre(self, u: Field) -> Field:
        return remove_mean(u) if self.kind is NormKind.LAYER else u


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Equation:
    """A reaction–diffusion equation of a field, stabilized.

    u_t = α L u + A[S u] + R(S u) + λ (u_0 − u) + f(u, t)

    >>> equation = dp.Equation(diffusion=0.1, reaction=lambda u: u - u**3)
    >>> equation.without("diffusion").active
    ('reaction',)
    """

    diffusion: float | Tensor | Sequence[float | Tensor] = 0.0
    """α for all time, or for each layer; a tensor holds one for each feature."""
    interaction: Maps = None
    """A: what sites take from each other, such as `Attention`."""
    reaction: Maps = None
    """R: what each site does by itself, such as `FeedForward`."""
    fidelity: float = 0.0
    """λ: how strongly the field is drawn to its start."""
    source: Rhs | None = None
    """f(u, t): anything else; the stabilizer leaves it alone."""
    stabilizer: Stabilizer | Projection = field(default_factory=Stabilizer)
    """What keeps the field bounded."""
    interaction_norm: Maps = None
    """S of the interaction; the plain norm of the stabilizer's kind unless given."""
    reaction_norm: Maps = None
    """S of the reaction; likewise."""
    boundary: Boundary | str = Boundary.NO_FLUX
    """What the ends of the sequence see."""
    causal: bool = False
    """Whether diffusion takes from the past only (upwind); the maps must be causal themselves."""
    prefix: int = 0
    """Sites in front that are not of the sequence; diffusion leaves them alone."""
    blocks: int | None = None
    """The depth that DeepNorm counts; the number of layers unless given."""
    grid: tuple[int, int] | None = None
    """Height and width of an image whose pixels are the sites, row by row; None for a sequence."""

    def __post_init__(self) -> None:
        """Refuse an equation that contradicts itself."""
        object.__setattr__(self, "boundary", check_one_of("boundary", self.boundary, Boundary))
        check_range("fidelity", self.fidelity, 0.0, 1e12)
        check_flag("causal", self.causal)
        if not isinstance(self.stabilizer, Stabilizer | Projection):
            raise ValueError(
                f"`stabilizer` must be a Stabilizer or a Projection, got {shown(self.stabilizer)}"
            )
        check_whole("prefix", self.prefix)
        if self.blocks is not None:
            check_positive("blocks", self.blocks)
        if self.grid is not None:
            check_grid("grid", self.grid)
        for alpha in self._alphas():
            if not isinstance(alpha, Tensor) and not is_number(alpha):
                raise ValueError(f"`diffusion` must be a number or a tensor, got {shown(alpha)}")
            if isinstance(alpha, Tensor):
                check_tensor("diffusion", alpha)
                if not alpha.numel() or alpha.is_complex():
                    raise ValueError(
                        "`diffusion` must hold real numbers, got "
                        f"{alpha.dtype}{list(alpha.shape)}; use 0.0 to switch it off"
                    )
            if float(alpha.detach().min() if isinstance(alpha, Tensor) else alpha) < 0:
                raise ValueError(
                    f"`diffusion` must not be negative, got {alpha}: heat would flow uphill and "
                    "the field blow up at once; use 0 to switch diffusion off"
                )
        if self.causal and self.boundary is not Boundary.NO_FLUX:
            raise ValueError(
                f"`boundary` must be 'no_flux' where `causal` is True, got {self.boundary!s}: the "
                "first site has no past; leave it out"
            )
        if self.grid is not None and (self.causal or self.prefix):
            raise ValueError(
                f"`grid` must be left out where `causal` or `prefix` is set, got {self.grid}: an "
                "image has no order of its sites; drop one of them"
            )
        counts = {name: len(value) for name, value in self._by_layer().items()}
        if len(set(counts.values())) > 1:
            listed = ", ".join(f"{name}: {count}" for name, count in counts.items())
            raise ValueError(
                f"`Equation` must have as many layers in every term, got {listed}; give one for "
                "each layer, or a single one for all"
            )
        if isinstance(self.stabilizer, Stabilizer) and self.stabilizer.deepnorm and not self._depth:
            raise ValueError(
                "`stabilizer` must not be DeepNorm where no term is given by layer: its gain "
                "depends on their number; give a sequence of maps, or `blocks`"
            )

    @property
    def layers(self) -> int | None:
        """How many layers the terms are given for; None if they are the same at all times."""
        return next((len(value) for value in self._by_layer().values()), None)

    @property
    def active(self) -> tuple[str, ...]:
        """The names of the terms that are not switched off."""
        return tuple(name for name in TERMS if not _off(getattr(self, name)))

    def without(self, *names: str) -> Equation:
        """Return the equation with terms switched off.

        Args:
            *names: Of `TERMS`.
        """
        for name in names:
            check_name("names", name, TERMS)
        off = {name: 0.0 if name in ("diffusion", "fidelity") else None for name in names}
        return replace(self, **off)  # type: ignore[arg-type]

    def projector(self, valid_mask: Mask | None = None) -> Callable[[Field], Field] | None:
        """Give what brings a field to where the stabilizer wants it; None unless it projects."""
        if not isinstance(self.stabilizer, Projection):
            return None
        return partial(self.stabilizer.project, valid_mask=valid_mask)

    def terms(
        self, u0: Field, *, layer: int = 0, valid_mask: Mask | None = None
    ) -> tuple[Term, ...]:
        """List the terms that act in one layer, stabilized, in the order of their turns.

        Args:
            u0: The start, to which fidelity draws.
            layer: Whose maps, where they are given by layer.
            valid_mask: True = real token; a wall to diffusion, and handed to the interaction.
        """
        found: list[Term] = []
        keywords = {} if valid_mask is None else {"valid_mask": valid_mask}
        for name in self.active:
            if name == "diffusion":
                found.append(self._diffusion(layer, self._walls(u0, valid_mask)))
            elif name == "fidelity":
                found.append(_fidelity(self.fidelity, u0))
            elif name == "source":
                assert self.source is not None, "active"
                found.append(Term(name="source", rhs=self.source))
            else:
                term = _pick(getattr(self, name), layer)
                norm = _pick(getattr(self, f"{name}_norm"), layer)
                extra = keywords if name == "interaction" else {}
                found.append(Term(name=name, rhs=self._stabilize(term, norm, extra)))
        if isinstance(self.stabilizer, Projection):
            found = [_tangential(self.stabilizer, term, valid_mask) for term in found]
        if not found:
            raise ValueError("`equation` must have at least one term, got none; switch one on")
        return tuple(found)

    def rate(
        self,
        t: float | Tensor,
        u: Field,
        *,
        start: Field | None = None,
        valid_mask: Mask | None = None,
    ) -> Field:
        """Give the rate of change of a field: the right-hand side that any solver can take.

            u_t = rate(t, u)

        Arguments in the order of torchdiffeq and scipy. Where terms are given by layer, layer l
        acts for l ≤ t < l + 1, so a solver that chooses its steps should stop at every whole time.

        Args:
            t: The time.
            u: The field, [batch, length, dim].
            start: The field that fidelity draws to; needed where it acts.
            valid_mask: True = real token.

        Example:
            >>> equation = Equation(diffusion=0.1)
            >>> torchdiffeq.odeint(equation.rate, u0, torch.tensor([0.0, 1.0]))
        """
        if self.fidelity and start is None:
            raise ValueError(
                f"`start` must be given where fidelity acts (λ = {self.fidelity:g}), got None; use "
                "functools.partial(equation.rate, start=u0)"
            )
        time = float(t)
        layer = 0 if self.layers is None else min(max(math.floor(time), 0), self.layers - 1)
        terms = self.terms(u if start is None else start, layer=layer, valid_mask=valid_mask)
        return add_terms(terms).rhs(u, time)

    def _diffusion(self, layer: int, valid_mask: Mask | None) -> Term:
        alphas = self._alphas()
        alpha = alphas[layer] if len(alphas) > 1 else alphas[0]
        if self.grid is not None:
            if valid_mask is not None:
                raise ValueError(
                    "`valid_mask` must be left out for diffusion over an image, got one of shape "
                    f"{list(valid_mask.shape)}; use a sequence, or an image without padding"
                )
            return plane_term(alpha, self.grid, boundary=Boundary(self.boundary))
        if self.causal:
            return transport_term(alpha, valid_mask=valid_mask)
        return diffusion_term(alpha, boundary=Boundary(self.boundary), valid_mask=valid_mask)

    def _walls(self, u0: Field, valid_mask: Mask | None) -> Mask | None:
        if not self.prefix:
            return valid_mask
        inside = torch.arange(u0.shape[1], device=u0.device) >= self.prefix
        return inside.expand(u0.shape[:2]) if valid_mask is None else valid_mask & inside

    def _alphas(self) -> Sequence[float | Tensor]:
        return self.diffusion if isinstance(self.diffusion, Sequence) else (self.diffusion,)

    def _stabilize(self, term: Map, norm: Map | None, extra: dict[str, Mask]) -> Rhs:
        def force(u: Field, t: float) -> Field:
            return term(u, t, **extra) if isinstance(term, Interpolated) else term(u, **extra)

        if isinstance(self.stabilizer, Projection):
            return force
        stabilizer = self.stabilizer
        plain = layer_norm if stabilizer.kind is NormKind.LAYER else rms_norm
        gain = stabilizer.stream_gain(self._depth or 1)

        def bound(u: Field, t: float) -> Field:
            if norm is None:
                return plain(u)
            return norm(u, t) if isinstance(norm, Interpolated) else norm(u)

        def rate(u: Field, t: float) -> Field:
            if stabilizer.norm is Norm.POST:
                kept = force(u, t) + gain * u if stabilizer.residual else force(u, t)
                return bound(kept, t) - u
            change = force(bound(u, t) if stabilizer.norm is Norm.PRE else u, t)
            return change if stabilizer.residual else change - u

        return rate

    @property
    def _depth(self) -> int | None:
        return self.blocks or self.layers

    def _by_layer(self) -> dict[str, Sequence[object]]:
        names = ("diffusion", "interaction", "reaction", "interaction_norm", "reaction_norm")
        given = {name: getattr(self, name) for name in names}
        return {
            name: value
            for name, value in given.items()
            if _many(value) or isinstance(value, Interpolated)
        }


def _many(value: object) -> bool:
    return isinstance(value, Sequence | nn.ModuleList)


def _off(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and value == 0)


def _pick(maps: Maps, layer: int) -> Map:
    return maps[layer] if _many(maps) else maps  # type: ignore[index,return-value]


def _fidelity(strength: float, u0: Field) -> Term:
    return Term(
        name="fidelity",
        rhs=lambda u, t: strength * (u0 - u),
        flow=lambda u, t, dt: u0 + math.exp(-strength * dt) * (u - u0),
    )


def _tangential(projection: Projection, term: Term, valid_mask: Mask | None) -> Term:
    def rate(u: Field, t: float) -> Field:
        return projection.tangent(u, term.rhs(u, t), valid_mask)

    return Term(name=term.name, rhs=rate, solve=term.solve, limit=term.limit)
