"""The field between two steps: dense output.

    Hermite    the cubic through both ends and both slopes            error O(h⁴)
    Flow       e^{θhL} u + h Σ_j θ^{j+1} φ_{j+1}(θhL) p_j             what the step itself assumed

A cubic would be wrong where diffusion is stiff: within one step a mode may decay by many orders.
The second form follows it, because it is the very solution that the step computed the end of.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor

from depthpde.shapes import Field
from depthpde.solvers.linear.generator import Generator


class Segment(Protocol):
    """One step, open to be read at any time within it."""

    @property
    def start(self) -> float:
        """Give the time at which it begins."""
        ...

    @property
    def end(self) -> float:
        """Give the time at which it ends."""
        ...

    def at(self, t: float) -> Field:
        """Give the field at a time within."""
        ...


@dataclass(slots=True, kw_only=True, eq=False)
class Hermite:
    """The cubic through two states and their slopes.

    u(θ) = (1 − θ) a + θ b + θ(θ − 1) [(1 − 2θ)(b − a) + (θ − 1) h a′ + θ h b′]
    """

    start: float
    end: float
    states: tuple[Field, Field]
    """The field at both ends."""
    rate: Callable[[Field, float], Field]
    """What gives a slope that is not known yet; called only when the segment is read."""
    slopes: tuple[Field, Field] | None = None
    """Both slopes, where the method had computed them."""
    project: Callable[[Field], Field] | None = None
    """Brings the field back to the surface it must stay on."""

    def at(self, t: float) -> Field:
        """Give the field at a time within."""
        a, b = self.states
        if self.slopes is None:
            self.slopes = self.rate(a, self.start), self.rate(b, self.end)
        h = self.end - self.start
        x = (t - self.start) / h
        bend = (1 - 2 * x) * (b - a) + (h * (x - 1)) * self.slopes[0] + (h * x) * self.slopes[1]
        u = (1 - x) * a + x * b + (x * (x - 1)) * bend
        return self.project(u) if self.project else u


@dataclass(slots=True, kw_only=True, eq=False)
class Flow:
    """The exact solution under a linear term and a polynomial of the rest.

    v(θ) = φ_0(θz) v_0 + h Σ_j θ^{j+1} φ_{j+1}(θz) p_j,    z = hL,    P(θ) = Σ_j p_j θ^j/j!
    """

    start: float
    end: float
    origin: Tensor
    """v_0, in the generator's coordinates."""
    combination: Tensor
    """[powers, values]: p = combination @ values."""
    values: Sequence[Tensor]
    """What the polynomial was made of, in the generator's coordinates."""
    generator: Generator
    """The linear term."""
    project: Callable[[Field], Field] | None = None
    """Brings the field back to the surface it must stay on."""
    powers: Tensor | None = field(default=None, init=False)

    def at(self, t: float) -> Field:
        """Give the field at a time within."""
        h = self.end - self.start
        x = (t - self.start) / h
        if self.powers is None:
            values = torch.stack(list(self.values))
            self.powers = torch.tensordot(self.combination.to(values), values, dims=1)
        order = self.powers.shape[0]
        phis = self.generator.phis(x * h, order)
        sizes = [h * x ** (j + 1) for j in range(order)]
        scale = torch.tensor(sizes, dtype=phis.dtype, device=phis.device)
        scale = scale.reshape(-1, *(1,) * (phis.ndim - 1))
        moved = self.generator.act(phis[0], self.origin)
        moved = moved + self.generator.act(scale * phis[1:], self.powers).sum(dim=0)
        u = self.generator.leave(moved)
        return self.project(u) if self.project else u


def monomials(nodes: list[float]) -> Tensor:
    """Expand Newton's polynomials in powers of θ.

        π_j(θ) = Π_{i<j} (θ − nodes_i) = Σ_m c_{jm} θ^m/m!

    Returns:
        c, [len(nodes) + 1, len(nodes) + 1].
    """
    rows = [[1.0]]
    for node in nodes:
        last = rows[-1]
        shifted = [0.0, *last]
        rows.append([a - node * b for a, b in zip(shifted, [*last, 0.0], strict=True)])
    size = len(rows)
    full = [[*row, *(0.0,) * (size - len(row))] for row in rows]
    factorials = [math.factorial(m) for m in range(size)]
    return torch.tensor(full, dtype=torch.float64) * torch.tensor(factorials, dtype=torch.float64)
