"""ModelConfig: everything that makes a model, and nothing that trains it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Annotated, Any, Protocol

from depthpde.config import Positive, Range, Settings
from depthpde.errors import check_grid, check_one_of, check_range, shown
from depthpde.layers.embedding import Encoding, InputKind
from depthpde.layers.pooling import Pooling
from depthpde.layers.reaction import Activation
from depthpde.layers.registry import LayerConfig, LayerKind, build_layer, read_layer
from depthpde.layers.stabilizer import Norm, Stabilizer
from depthpde.models.placement import Placement, read_placement
from depthpde.models.position import OPTIONS, ROUTES, Option, Position, Route


class Geometry(StrEnum):
    """Which sites are neighbours."""

    LINE = "line"
    """Each and the next."""
    ROWS = "rows"
    """Each and the next in its row of the grid; rows do not mix."""
    PLANE = "plane"
    """The four around each on the grid."""


class Interaction(StrEnum):
    """How the sites of a block are mixed."""

    ATTENTION = "attention"
    """All with all, by content."""
    LSTM = "lstm"
    """By a memory carried along the sequence, from both ends."""
    CONVOLUTION = "convolution"
    """With those around each on the grid, as a residual network does."""


class RatioSchedule(StrEnum):
    """How the initial ratio changes with depth."""

    CONSTANT = "constant"
    """The same in every block."""
    DECAYING = "decaying"
    """r_b = r_0 (1 − b / blocks): less mixing in later blocks."""


class TaskLike(Protocol):
    """What a model needs to know of a task."""

    @property
    def kind(self) -> str:
        """What one example is; ``pair`` for two documents."""

    @property
    def length(self) -> int:
        """Longest sequence."""

    @property
    def vocabulary(self) -> int:
        """Number of token ids."""

    @property
    def classes(self) -> int:
        """Number of labels."""

    @property
    def grid(self) -> tuple[int, int] | None:
        """Rows and columns of an image."""


_KNOWN_BY_TASK = ("kind", "length", "vocabulary", "classes", "grid")


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelConfig(Settings):
    """A Transformer and what is placed in it.

    >>> config = dp.ModelConfig(dim=32, blocks=2, positions=("after_embedding",))
    >>> dp.ModelConfig.from_dict(config.to_dict()) == config
    True
    """

    dim: Positive = 64
    """Features of the field."""
    blocks: Positive = 2
    """Depth: number of blocks."""
    heads: Positive = 2
    """Attention heads; divide `dim`."""
    hidden: Positive | None = None
    """Features inside the feed-forward; four times `dim` unless given."""
    activation: Activation | str = Activation.GELU
    """Nonlinearity of the feed-forward."""
    dropout: Annotated[float, Range(0.0, 1.0)] = 0.0
    """Share of the embedding and of every increment dropped in training."""
    attention_dropout: Annotated[float, Range(0.0, 1.0)] = 0.0
    """Share of the attention weights dropped in training; on a CPU torch then forms them."""
    causal: bool = False
    """Whether a site sees only itself and the sites before it."""
    stabilizer: Stabilizer | Mapping[str, Any] = field(default_factory=Stabilizer)
    """Norm and residual; a mapping is read as one."""
    input: InputKind | str = InputKind.TOKEN
    """What comes in."""
    encoding: Encoding | str = Encoding.LEARNED
    """How a site knows its index."""
    pooling: Pooling | str = Pooling.MEAN
    """How a classifier gathers the field into one vector."""
    positions: Sequence[Placement | Position | str | Mapping[str, Any]] = ()
    """Where something is placed; a position's name means a placement, alone or in a list."""
    layer: LayerConfig | LayerKind | str | Mapping[str, Any] = field(default_factory=LayerConfig)
    """What is placed, unless a placement names another; a name means a layer."""
    route: Route | str | None = None
    """On increments or on the stream; None is each position's default."""
    schedule: RatioSchedule | str = RatioSchedule.CONSTANT
    """How the initial ratio changes with depth."""
    geometry: Geometry | str | None = None
    """Which sites are neighbours; None is the plane for patches and the line for all else."""
    grid: tuple[int, int] | None = None
    """Rows and columns of sites; from the task unless given."""
    patch: Positive = 4
    """Side of a patch in pixels, for patch input."""
    channels: Positive = 1
    """Numbers at each pixel or site, for patch and linear input; from the task unless given."""
    vocabulary: Positive | None = None
    """Number of token ids or grey levels; from the task unless given."""
    length: Positive | None = None
    """Longest sequence; from the task unless given."""
    classes: Positive | None = None
    """Number of labels; from the task unless given."""
    documents: int = 1
    """Documents of one example, each encoded by itself: 1 or 2."""
    interaction: Interaction | str | None = None
    """What mixes the sites of a block; None is attention. The others have no heads, take no cache
    and are for classifiers."""

    def check(self) -> None:
        """Resolve names, and refuse a config that contradicts itself."""
        self._read_placements()
        check_range("documents", self.documents, 1, 2)
        if self.dim % self.heads:
            raise ValueError(
                f"`heads` must divide `dim`, got {self.heads} heads and dim {self.dim}"
            )
        if self.encoding is Encoding.ROTARY and self.head_dim % 2:
            raise ValueError(
                f"`encoding` must not be rotary where dim / heads is odd, got {self.head_dim}"
            )
        if self.encoding is Encoding.SINUSOIDAL and self.dim % 2:
            raise ValueError(f"`dim` must be even for sinusoidal encoding, got {self.dim}")
        self._check_grid()
        self._check_interaction()
        self._check_positions()

    def _read_placements(self) -> None:
        self._set(layer=read_layer(self.layer))
        given = (self.positions,) if isinstance(self.positions, str) else self.positions
        if not isinstance(given, Sequence):
            raise ValueError(
                f"`positions` must be a sequence of positions, got {given!r}; write a list, such "
                'as ["after_embedding"]'
            )
        self._set(positions=tuple(read_placement(each) for each in given))

    def _check_grid(self) -> None:
        if self.grid is None:
            return
        rows, columns = check_grid("grid", self.grid)
        self._set(grid=(rows, columns))
        if self.length is not None and self.length != rows * columns:
            raise ValueError(
                f"`grid` must have as many sites as `length`, got {self.grid} and {self.length}"
            )
        if self.length is None:
            self._set(length=rows * columns)

    def _check_interaction(self) -> None:
        if self.interaction is Interaction.ATTENTION:  # says nothing, so that no run is renamed
            self._set(interaction=None)
        if self.interaction is None:
            return
        inside = {Position.IN_ATTENTION, Position.IN_HEADS} & {e.position for e in self.placements}
        off_grid = self.interaction is Interaction.CONVOLUTION and self.pooling is Pooling.CLS
        for what, wrong in {
            "`causal` must be False": self.causal,
            "`encoding` must not be rotary": self.encoding is Encoding.ROTARY,
            "`attention_dropout` must be 0": self.attention_dropout > 0,
            "`positions` must leave out 'in_attention' and 'in_heads'": bool(inside),
            "`pooling` must not be cls, whose site is on no grid,": off_grid,
        }.items():
            if wrong:
                raise ValueError(
                    f"{what} where nothing attends, got interaction {str(self.interaction)!r}; "
                    "leave it out, or use attention"
                )

    def _check_positions(self) -> None:
        placements = self.placements
        seen = [each.position for each in placements]
        for position in seen:
            if seen.count(position) > 1:
                raise ValueError(
                    f"`positions` must name each position once, got {position.value!r} "
                    f"{seen.count(position)} times"
                )
        if Position.BEFORE_NORM in seen and self.stability.norm is Norm.NONE:
            raise ValueError(
                "`positions` must leave out 'before_norm' where there is no norm; "
                "use a pre- or post-norm stabilizer"
            )
        layers = [each.layer for each in placements]
        if self.layer not in (*layers, LayerConfig()):  # named, though placed nowhere
            layers.append(read_layer(self.layer))
        for layer in layers:
            self._check_layer(layer)

    def _check_layer(self, layer: LayerConfig) -> None:
        if self.schedule is RatioSchedule.DECAYING and _starts_as_identity(layer):
            raise ValueError(
                "`schedule` must be constant for a layer that starts as the identity, got "
                f"decaying with {str(layer.kind)!r}; use start='blur' or initial_ratio"
            )
        # The layer itself knows best what it refuses: build one and throw it away.
        build_layer(layer, self.dim, causal=self.causal, grid=self.plane, num_heads=self.heads)

    @property
    def placements(self) -> tuple[ResolvedPlacement, ...]:
        """Every placement with its route, layer and option decided."""
        return tuple(self._resolve(read_placement(each)) for each in self.positions)

    def _resolve(self, placement: Placement) -> ResolvedPlacement:
        position = check_one_of("position", placement.position, Position)
        # A placement refuses a route that its position does not have; the config's one too.
        routed = replace(placement, route=placement.route or self.route)
        return ResolvedPlacement(
            position=position,
            route=Route(routed.route or ROUTES[position][0]),
            layer=read_layer(placement.layer or self.layer),
            option=Option(placement.option or OPTIONS[position][0])
            if position in OPTIONS
            else None,
        )

    @property
    def stability(self) -> Stabilizer:
        """The stabilizer, as what it is."""
        assert isinstance(self.stabilizer, Stabilizer), "read by Settings"
        return self.stabilizer

    @property
    def head_dim(self) -> int:
        """Features of one head."""
        return self.dim // self.heads

    @property
    def hidden_dim(self) -> int:
        """Features inside the feed-forward, decided."""
        return self.hidden or 4 * self.dim

    @property
    def prefix(self) -> int:
        """Sites in front that are not of the sequence: the one that CLS pooling adds."""
        return int(self.pooling is Pooling.CLS)

    @property
    def neighbours(self) -> Geometry:
        """Which sites are neighbours, decided."""
        if self.geometry is None:
            return Geometry.PLANE if self.input is InputKind.PATCH else Geometry.LINE
        return Geometry(self.geometry)

    @property
    def plane(self) -> tuple[int, int] | None:
        """The grid where diffusion is two-dimensional, else None."""
        return self.grid if self.neighbours is Geometry.PLANE else None

    @property
    def row_length(self) -> int | None:
        """The width of the grid where its rows must not mix, else None."""
        return self.grid[1] if self.grid and self.neighbours is Geometry.ROWS else None

    def ratio_gain(self, block: int | None) -> float:
        """Return what multiplies the initial ratio in a block.

        1, or 1 − block / blocks where the schedule is decaying
        """
        if self.schedule is RatioSchedule.CONSTANT or block is None:
            return 1.0
        return 1.0 - block / self.blocks

    def fit(self, task: TaskLike) -> ModelConfig:
        """Return the config with what the task knows filled in.

        Fields that the config already sets stay, and must not contradict the task.
        """
        _check_task(task)
        patched = self.input is InputKind.PATCH
        known: dict[str, Any] = {"classes": int(task.classes)}
        if patched:
            known["grid"] = _patches(task.grid, self.patch)
        else:
            known |= {"vocabulary": int(task.vocabulary), "length": int(task.length)}
            known["grid"] = task.grid
        channels = getattr(task, "channels", None)
        self._check_input(channels)
        for name, wanted in known.items():
            got = getattr(self, name)
            if got is not None and got != wanted and not (name == "length" and got > wanted):
                raise ValueError(
                    f"`{name}` must be {wanted} for this task, got {got}; leave it out of the "
                    "config, and the task fills it in"
                )
        filled = {name: value for name, value in known.items() if getattr(self, name) is None}
        if channels is not None:
            filled["channels"] = int(channels)
        documents = 2 if str(task.kind) == "pair" else 1
        if self.documents > documents:
            raise ValueError("`documents` must be 1 for this task, got 2; leave it out")
        return replace(self, **filled, documents=documents)

    def _check_input(self, channels: int | None) -> None:
        """Refuse a table of tokens for real numbers, and another number of channels."""
        if channels is None:
            return
        if self.input is InputKind.TOKEN:
            raise ValueError(
                f"`input` must be 'linear' or 'patch' for a task of {channels} real numbers a "
                "site, got 'token'; set input='linear'"
            )
        if self.channels not in (1, channels):
            raise ValueError(
                f"`channels` must be {channels} for this task, got {self.channels}; leave it out "
                "of the config, and the task fills it in"
            )

    def check_complete(self, *names: str) -> None:
        """Refuse to build a model while one of these fields is open."""
        missing = [name for name in names if getattr(self, name) is None]
        gridded = self.neighbours is not Geometry.LINE
        gridded = gridded or self.interaction is Interaction.CONVOLUTION
        if gridded and self.grid is None:
            missing.append("grid")
        if missing:
            raise ValueError(
                f"`{missing[0]}` must be known to build the model; give it in the config, or "
                "hand over a task that knows it"
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class ResolvedPlacement:
    """A placement with nothing left open."""

    position: Position
    """Where."""
    route: Route
    """On the increment or on the stream."""
    layer: LayerConfig
    """Which layer."""
    option: Option | None
    """Which meaning of the position; None where it has one only."""


def _check_task(task: object) -> None:
    lacking = [name for name in _KNOWN_BY_TASK if not hasattr(task, name)]
    if lacking:
        name = task if isinstance(task, str) else "listops-mini"
        raise ValueError(
            f"`task` must be a task, which has a {lacking[0]}, got {task!r}; use "
            f"depthpde.tasks[{name!r}]"
        )


def _starts_as_identity(layer: LayerConfig) -> bool:
    if layer.kind is LayerKind.DEPTHWISE_CONV:
        return layer.start != "blur"
    return layer.initial_ratio == 0.0


def check_config(config: ModelConfig) -> ModelConfig:
    """Return a model's config, or say what came in its place."""
    if not isinstance(config, ModelConfig):
        raise ValueError(
            f"`config` must be a ModelConfig, got {shown(config)}; use dp.ModelConfig(dim=64)"
        )
    return config


def _patches(grid: tuple[int, int] | None, patch: int) -> tuple[int, int]:
    if grid is None or grid[0] % patch or grid[1] % patch:
        raise ValueError(
            f"`patch` must divide the sides of the task's images, got {patch} and grid {grid}"
        )
    return grid[0] // patch, grid[1] // patch
