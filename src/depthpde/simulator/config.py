"""SimulatorConfig: how a simulator integrates, and nothing that a model's config says already."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from depthpde.config import Positive, Settings
from depthpde.errors import check_range
from depthpde.layers.ratio import UNBOUNDED_DEFAULT
from depthpde.simulator.integrator import Integrator
from depthpde.solvers.tableau import EULER, TABLEAUS


class Weights(StrEnum):
    """How weights depend on depth time."""

    PER_LAYER = "per_layer"
    """Those of block l for l ≤ t < l + 1."""
    INTERPOLATED = "interpolated"
    """Between those of block l and of block l + 1."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SimulatorConfig(Settings):
    """How a simulator integrates; the rest is the model's config.

    >>> config = dp.SimulatorConfig(method="rk4", steps=4, weights="interpolated")
    """

    method: Integrator | str = Integrator.LIE
    """The integrator; Lie with one step a block is the Transformer itself."""
    steps: Positive = 1
    """Steps of one block, dt = 1 / steps."""
    weights: Weights | str = Weights.PER_LAYER
    """How weights depend on depth time."""
    diffusion: float = 0.0
    """Where the learned diffusivity of every block starts; 0 leaves diffusion out."""
    projection: bool = False
    """Whether the field is kept on the sphere of the norm; the model itself then has none."""

    def check(self) -> None:
        """Refuse a diffusivity that the integrator cannot step."""
        advice = f"{self.method!s} with {self.steps} step(s) a block is unstable beyond"
        start = check_range("diffusion", self.diffusion, 0.0, self.bound, advice=advice)
        self._set(diffusion=start)  # 0 and 0.0 give a run one id

    @property
    def bound(self) -> float:
        """The largest diffusivity that can be learned: no mode of an explicit step flips.

        α ≤ 1, and α ≤ steps · ℓ / 8 where diffusion is stepped explicitly
        """
        if self.method in (Integrator.STRANG, Integrator.BACKWARD_EULER):
            return UNBOUNDED_DEFAULT
        tableau = EULER if self.method is Integrator.LIE else TABLEAUS[str(self.method)]
        return min(UNBOUNDED_DEFAULT, self.steps * tableau.real_axis / 8)
