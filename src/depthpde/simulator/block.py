"""One unit of depth time, integrated: the block of a simulator."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from depthpde.layers.decoding import DecodeCache
from depthpde.layers.dropout import dropout as drop
from depthpde.layers.ratio import BoundedRatio
from depthpde.layers.stabilizer import Norm, Stabilizer
from depthpde.models.block import Block
from depthpde.models.config import ModelConfig
from depthpde.models.position import Position
from depthpde.shapes import Field, Mask
from depthpde.simulator.config import SimulatorConfig, Weights
from depthpde.simulator.depth import Interpolated
from depthpde.simulator.equation import Equation, Map, Projection
from depthpde.simulator.integrator import Integrator, StepPlan, plan


class SimulatedBlock(Block):
    """Advance the field by one unit of depth time.

        u ← Φ_dt ∘ … ∘ Φ_dt u,    dt = 1 / steps,    Φ_dt a step of the integrator

    With Lie and one step this is the block itself. Learned: what a block learns, and the
    diffusivity, one for each feature, which cannot leave [0, bound].

    Args:
        config: The model's config.
        index: Which block this is, from 0.
        simulator: How to integrate.
    """

    def __init__(self, config: ModelConfig, index: int, simulator: SimulatorConfig) -> None:
        super().__init__(config, index)
        if config.positions:
            raise ValueError(
                "`positions` must be empty in a simulator, got "
                f"{', '.join(each.position.value for each in config.placements)}: diffusion is a "
                "term of its equation; use SimulatorConfig(diffusion=…)"
            )
        if config.interaction is not None:
            raise ValueError(
                "`interaction` must be attention in a simulator, got "
                f"{str(config.interaction)!r}; leave it out"
            )
        if simulator.projection and self.norm is not Norm.NONE:
            raise ValueError(
                f"`norm` must be 'none' where the simulator projects, got {str(self.norm)!r}: the "
                "projection stands for the norm; use Stabilizer(norm='none')"
            )
        self.index, self.num_blocks, self.causal = index, config.blocks, config.causal
        self.prefix = config.prefix
        self.simulator = simulator
        self.stabilizer: Stabilizer | Projection = config.stability
        if simulator.projection:
            self.stabilizer = Projection(kind=config.stability.kind)
        self.diffusivity = None
        if simulator.diffusion > 0:
            self.diffusivity = BoundedRatio(config.dim, simulator.bound, simulator.diffusion)
        self._next: tuple[SimulatedBlock, ...] = ()  # a tuple: not a submodule of this one

    def forward(
        self, u: Field, valid_mask: Mask | None = None, *, cache: DecodeCache | None = None
    ) -> Field:
        """Return the field one unit of time later."""
        if cache is not None:
            raise ValueError(
                "`cache` must be left out: a simulator runs whole sequences; use the Transformer "
                "with the same weights to go on site by site"
            )
        arranged = self.plan(u, valid_mask)
        dt = 1.0 / self.simulator.steps
        for step in range(self.simulator.steps):
            u = arranged.step(u, self.index + step * dt, dt)
        return self.placed.on_stream(Position.BETWEEN_BLOCKS, u, valid_mask=valid_mask)

    def plan(self, u: Field, valid_mask: Mask | None = None) -> StepPlan:
        """Arrange the terms of this block for its integrator; attention is open to observers."""
        watch = partial(self.placed.on_branch, valid_mask=valid_mask)
        equation = Equation(
            diffusion=0.0 if self.diffusivity is None else self.diffusivity(),
            interaction=self._along_depth("attention", options={"at": watch}),
            reaction=self._along_depth("reaction"),
            interaction_norm=self._along_depth("attention_norm", dropout=False),
            reaction_norm=self._along_depth("reaction_norm", dropout=False),
            stabilizer=self.stabilizer,
            causal=self.causal,
            prefix=self.prefix,
            blocks=self.num_blocks,
        )
        terms = equation.terms(u, valid_mask=valid_mask)
        return plan(Integrator(self.simulator.method), terms, equation.projector(valid_mask))

    def follow(self, block: SimulatedBlock) -> None:
        """Take the block after this one, whose weights stand at the end of this one's time."""
        self._next = (block,)

    def _along_depth(
        self, name: str, *, dropout: bool = True, options: Mapping[str, Any] | None = None
    ) -> Map:
        maps = [self.get_submodule(name)]
        if self.simulator.weights is Weights.INTERPOLATED and self._next:
            maps.append(self._next[0].get_submodule(name))
        share = self.add.dropout if self.training and dropout else 0.0
        then = partial(drop, share=share) if share else None
        if len(maps) == 1 and then is None:
            return partial(maps[0], **options) if options else maps[0]
        return Interpolated(maps, start=self.index, then=then, options=options)
