"""What a block adds to its stream, and through which modules: read off a run, not off names.

    u₁ = a u + c o        o left a module;  a later module reads u₁, or the block returns it

The block is called again with the arguments of a real call. Each tensor that a module reads is
compared with the known states of the stream, and with a state plus what left one module; a term
*mixes* where it moves at sites whose input stayed. So attention, a state space or a convolution
over sites is an interaction, and a feed-forward a reaction, whatever either is called.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from depthpde.insertion.family import NormOrder
from depthpde.insertion.layout import FieldLayout
from depthpde.insertion.recorder import Given, Recorder

CACHES = ("past_key_values", "past_key_value", "layer_past", "cache_params")
"""What blocks call a cache: a second call must not add to it."""
TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4}
COARSE_TOLERANCE = 2e-2
"""How far a sum may be from the tensor that it explains, relative to its size."""


@dataclass(frozen=True, slots=True)
class BlockCall:
    """One call of one block, as a run brought it."""

    module: nn.Module
    given: Given
    key: int | str
    """Which argument holds the stream."""
    u: Tensor
    out: Tensor
    layout: FieldLayout

    def again(self, u: Tensor) -> Tensor:
        """Call the block with another stream and the same arguments beside it."""
        names = [*self.given.names, *range(len(self.given.args))]
        args = [None if names[k] in CACHES else each for k, each in enumerate(self.given.args)]
        named = {k: None if k in CACHES else each for k, each in self.given.named.items()}
        if isinstance(self.key, int):
            args[self.key] = u
        else:
            named[self.key] = u
        output = self.module(*args, **named)
        made: Tensor = output[0] if isinstance(output, tuple | list) else output
        return made


@dataclass(slots=True)
class Increment:
    """One increment."""

    path: str
    mixes: bool
    index: int
    """Of the event at which it left its module."""


@dataclass(slots=True)
class BlockComposition:
    """How a block is composed."""

    terms: list[Increment] = field(default_factory=list)
    norm: NormOrder = NormOrder.PRE
    norms: list[str] = field(default_factory=list)
    parallel: bool = False
    """Whether several terms read one stream: there is none between them."""
    causal: bool | None = None
    """Whether no site of the block sees its future; None where no site moves another."""
    projections: dict[str, int] = field(default_factory=dict)
    """Linear maps that give the stream's width, with their events."""


@dataclass(slots=True)
class _Event:
    path: str
    module: nn.Module
    entering: bool
    tensor: Tensor
    whole: Any
    """All that left the module."""
    apart: bool
    """Whether it is laid out otherwise than the stream: in windows."""


@dataclass(slots=True)
class _State:
    tensor: Tensor
    kind: str  # entry, sum, norm
    source: int = -1


def decompose(call: BlockCall) -> BlockComposition:
    """Find the terms and norms of one block by running it three times.

    Args:
        call: The block and what it was called with.
    """
    events, out = _events(call, call.u)
    even, odd = slice(0, None, 2), slice(1, None, 2)  # neighbours, also inside small windows
    walk = _Walk(call, events)
    walk.run(out)
    found = BlockComposition()
    for path, index in walk.terms:
        frozen = [term.path for term in found.terms]
        moved = _events(call, _changed(call, even), frozen, walk.made)[0][index].tensor
        mixes = _differ(call, events[index].tensor, moved, odd)
        found.terms.append(Increment(path, mixes, index))
    found.causal = block_causality(call)
    found.projections = {
        event.path: k
        for k, event in enumerate(events)
        if not event.entering and is_linear(event.module) and not event.apart
    }
    walk.describe(found)
    return found


def block_causality(call: BlockCall) -> bool | None:
    """Return whether no site of a block sees its future; None where no site moves another.

    Args:
        call: The block and what it was called with.
    """
    cut = max(call.layout.field(call.u).shape[1] // 2, 1)
    before, behind = slice(0, cut), slice(cut, None)
    if _differ(call, call.out, call.again(_changed(call, behind)), before):
        return False
    return True if _differ(call, call.out, call.again(_changed(call, before)), behind) else None


def _events(
    call: BlockCall, u: Tensor, frozen: Sequence[str] = (), made: Mapping[str, Any] | None = None
) -> tuple[list[_Event], Tensor]:
    """Run a block; modules named in `frozen` give what they gave before, so that only u differs."""
    events: list[_Event] = []
    calls: Counter[str] = Counter()

    def see(path: str, module: nn.Module, entering: bool, value: Any) -> None:
        whole = value
        calls[path] += not entering
        value = value.at(0) if isinstance(value, Given) else value
        value = value[0] if isinstance(value, tuple | list) and value else value
        if not isinstance(value, Tensor) or value.numel() != u.numel():
            return
        if value.shape != u.shape and value.shape[-1] != u.shape[-1]:
            return
        tensor = value.detach().reshape(u.shape).clone()
        apart = value.ndim > 2 and value.shape[0] != u.shape[0]
        events.append(_Event(path, module, entering, tensor, None if entering else whole, apart))

    with Recorder() as recorder:
        for path, module in call.module.named_modules():
            if path in frozen and made is not None:
                hook = partial(_instead, made[path])
                recorder.callback(module.register_forward_hook(hook).remove)
            if path:
                recorder.on_call(module, partial(see, path, module, True))
                recorder.on_output(module, partial(see, path, module, False))
        out = call.again(u)
    events = [each for each in events if calls[each.path] == 1]  # a shared dropout is no place
    return events, out.detach()


def _changed(call: BlockCall, where: slice) -> Tensor:
    u = call.layout.field(call.u).clone()
    size = u.square().mean().sqrt()
    u[:, where] = size * torch.roll(u[:, where].flip(-1), 1, dims=0) / size.clamp_min(1e-12) + size
    return call.layout.back(u, call.u)


def _instead(made: Any, module: nn.Module, args: Any, output: Any) -> Any:
    return made


def _differ(call: BlockCall, a: Tensor, b: Tensor, where: slice) -> bool:
    gap = (call.layout.field(b) - call.layout.field(a))[:, where].abs().max()
    return bool(gap > TOLERANCE.get(a.dtype, COARSE_TOLERANCE) / 10 * a.abs().max())


class _Walk:
    """Follow the stream through the events of one call."""

    def __init__(self, call: BlockCall, events: Sequence[_Event]) -> None:
        self.call, self.events = call, events
        self.tolerance = TOLERANCE.get(call.u.dtype, COARSE_TOLERANCE)
        self.states = [_State(_flat(call.u), "entry")]
        self.outputs: list[tuple[str, int, Tensor]] = []
        self.terms: list[tuple[str, int]] = []
        self.readers: list[tuple[str, int]] = []
        self.exit = -1
        self.plain, self.together = True, False

    @property
    def made(self) -> dict[str, Any]:
        """All that left the modules of the terms."""
        return {path: self.events[k].whole for path, k in self.terms}

    def run(self, out: Tensor) -> None:
        """Name every state, from the block's input to its output."""
        reading: dict[str, int] = {}
        for k, event in enumerate(self.events):
            x = _flat(event.tensor)
            if event.entering:
                state = self._known(x)
                state = self._sum(x) if state < 0 else state
                if state < 0 and is_norm(event.module):
                    state = self._sum(x, two=True)  # two terms side by side
                if state >= 0 and is_norm(event.module):
                    self.readers.append((event.path, state))
                    reading[event.path] = state
                continue
            if self._known(x) < 0 and not event.apart:
                self.outputs.append((event.path, k, x))
            if event.path in reading:
                self.states.append(_State(x, "norm", reading[event.path]))
        x = _flat(out)
        self.exit = self._known(x)
        if self.exit < 0:
            self.exit = self._sum(x)
        if self.exit < 0:
            self.exit = self._sum(x, two=True)
            self.together = self.exit >= 0

    def describe(self, found: BlockComposition) -> None:
        """Write down norms and order; nothing is kept of a block whose end is not understood."""
        last = self.states[self.exit] if self.exit >= 0 else None
        if last is None:
            found.terms.clear()
            return
        sums = [k for k, each in enumerate(self.states) if each.kind == "sum"]
        if last.kind == "norm":
            found.norm = NormOrder.POST
            norms = [path for path, state in self.readers if state in sums]
            found.norms = norms if len(norms) == len(found.terms) else []
            return
        found.parallel = self.together
        order = [0, *sums]
        if self.together:
            found.norms = [path for path, state in self.readers if state == 0]
        elif self.plain:
            first = {state: path for path, state in reversed(self.readers)}
            norms = [first.get(state, "") for state in order if state != self.exit]
            found.norms = norms if all(norms) else []

    def _known(self, x: Tensor) -> int:
        for k in reversed(range(len(self.states))):
            if _fits(x, [self.states[k].tensor], self.tolerance, exact=True) is not None:
                return k
        return -1

    def _sum(self, x: Tensor, *, two: bool = False) -> int:
        for k in reversed(range(len(self.states))):
            state = self.states[k]
            for i in reversed(range(len(self.outputs))):
                groups = [[i]] if not two else [[i, j] for j in reversed(range(i))]
                for group in groups:
                    parts = [state.tensor, *(self.outputs[each][2] for each in group)]
                    weights = _fits(x, parts, self.tolerance)
                    if weights is None:
                        continue
                    for each in reversed(group):
                        self.terms.append(self.outputs[each][:2])
                    self.plain = self.plain and abs(weights[0] - 1) < 1e-3
                    self.outputs = [] if not two else self.outputs
                    self.states.append(_State(x, "sum"))
                    return len(self.states) - 1
        return -1


def _flat(u: Tensor) -> Tensor:
    return u.detach().double().flatten()


def _fits(
    x: Tensor, parts: list[Tensor], tolerance: float, *, exact: bool = False
) -> list[float] | None:
    """Return the weights with which some tensors make up another; None if they do not."""
    size = x.norm()
    if size == 0 or not bool(size.isfinite()):
        return None
    if exact:
        return [1.0] if bool((x - parts[0]).norm() <= tolerance * size) else None
    basis = torch.stack(parts)
    gram = basis @ basis.T
    scale = gram.diagonal().sqrt()
    if bool((scale <= 1e-6 * size).any()) or not bool(scale.isfinite().all()):
        return None
    unit = gram / scale[:, None] / scale
    if torch.linalg.det(unit) < 1e-8:
        return None
    weights = torch.linalg.solve(gram, basis @ x)
    if bool(((weights.abs() * scale) < 1e-4 * size).any()):
        return None
    fits = (x - weights @ basis).norm() <= tolerance * size
    return [float(each) for each in weights] if bool(fits) else None


def is_linear(module: nn.Module) -> bool:
    """Return whether a module is a linear map, by what it calls its sizes."""
    return hasattr(module, "in_features") or hasattr(module, "nx")


def is_norm(module: nn.Module) -> bool:
    """Return whether a module is a normalization, by its class."""
    return "norm" in type(module).__name__.lower()
