"""How large an error may be, and how long the next step.

    ‖e‖ ≤ atol + rtol · max(‖u_n‖, ‖u_{n+1}‖)        for every sample by itself, in the RMS norm

The norm is over the whole field of a sample, so it is the same in every orthonormal basis, and a
batch never hides one sample's error behind the others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from depthpde.errors import is_number, shown
from depthpde.shapes import Field

SAFETY = 0.9
"""Aim a little below the tolerance, so that few steps are rejected."""
INTEGRAL, PROPORTIONAL = 0.7, 0.4
"""Gains of the PI controller, to be divided by the exponent of the error."""
SLOWEST, FASTEST = 0.2, 10.0
"""By how much one step may differ from the last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """The local error that a step may make."""

    rtol: float = 1e-6
    """Relative to the size of the sample's field."""
    atol: float | None = None
    """Absolute; a thousandth of `rtol` unless given. Matters where the field decays to nothing."""

    def __post_init__(self) -> None:
        """Refuse tolerances that nothing can meet."""
        for name, value in (("rtol", self.rtol), ("atol", self.absolute)):
            if not is_number(value) or not value > 0:
                raise ValueError(
                    f"`{name}` must be positive and finite, got {shown(value)}: "
                    "no step is exact; use 1e-6"
                )

    @property
    def absolute(self) -> float:
        """Give the absolute tolerance."""
        if self.atol is not None:
            return self.atol
        return 1e-3 * self.rtol if is_number(self.rtol) else self.rtol

    def check(self, u: Field) -> None:
        """Refuse a tolerance below the rounding of the field's own numbers."""
        least = 8 * torch.finfo(u.dtype).eps
        if self.rtol < least:
            raise ValueError(
                f"`rtol` must be at least {least:.1g} for {u.dtype}, got {self.rtol:g}: it is "
                "below rounding; use a larger one, or float64"
            )

    def ratio(self, error: Tensor, before: Tensor, after: Tensor) -> float:
        """Measure an error in units of what is allowed; the worst sample counts.

            max_b ‖e_b‖ / (atol + rtol max(‖u_b‖, ‖u′_b‖))

        NaN where the error is no number. For a method that keeps the very solution whose error this
        is, divide the error by dt: per unit of time, the errors of many steps then add up to what
        was allowed. One that keeps the better of two solutions needs no such care.
        """
        return self.ratios(error[None], before, after)[0]

    def ratios(self, errors: Tensor, before: Tensor, after: Tensor) -> list[float]:
        """Measure several errors of the same step, [errors, batch, …]."""
        with torch.no_grad():
            allowed = self.absolute + self.rtol * torch.maximum(_rms(before), _rms(after))
            found: list[float] = (_rms(errors) / allowed).amax(dim=-1).tolist()
        return found

    def first_step(self, u: Tensor, rate: Tensor, order: int) -> float:
        """Guess a step whose error is about what is allowed.

        h = ½ rtol^{1/(order+1)} ‖u‖ / ‖u′‖        the least over the samples
        """
        with torch.no_grad():
            size = _rms(u) + self.absolute / self.rtol
            pace = (_rms(rate) / size).max()
        slowest = float(pace) if pace.isfinite() else 1e12  # no number: the first step will tell
        return 0.5 * self.rtol ** (1 / (order + 1)) / max(slowest, 1e-12)


def next_factor(ratio: float, before: float, exponent: int) -> float:
    """Choose the next step by a PI controller.

        h ← h · 0.9 · ratio^{−0.7/q} · before^{0.4/q},    within [0.2, 10]

    The second factor damps the to and fro of a controller that sees the last error alone.

    Args:
        ratio: The error of this step in units of what is allowed.
        before: That of the step before it.
        exponent: q, where the error of a step is O(h^q).
    """
    if not ratio < float("inf"):  # no number: the step left all bounds
        return SLOWEST
    if ratio > 1:
        return max(SLOWEST, SAFETY * ratio ** (-1 / exponent))
    small = 1e-8
    grown = max(ratio, small) ** (-INTEGRAL / exponent) * max(before, small) ** (
        PROPORTIONAL / exponent
    )
    return min(FASTEST, max(SLOWEST, SAFETY * grown))


def _rms(u: Tensor) -> Tensor:
    """Give the root mean square over sites and features, in double precision."""
    sizes = torch.linalg.vector_norm(u.detach(), dim=(-2, -1), dtype=torch.float64)
    return sizes / math.sqrt(u.shape[-2] * u.shape[-1])
