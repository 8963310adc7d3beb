"""Run a model as a question wants it: from the same memory, with the same random numbers.

A run is one or several calls; what counts is the last. It is made in the model's own precision, or
in float64 where rounding must be told from a leak, with or without a trace of every module.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from depthpde.insertion.calling import call_model
from depthpde.isolation.batch import CallBatch, Sequence
from depthpde.isolation.modes import NoDropout, in_float64, wide_weights, widen, without_fast_path
from depthpde.isolation.snapshot import MemorySnapshot
from depthpde.isolation.trace import ModuleCall, floats, tracing

Call = Callable[[CallBatch], Any]


@dataclass(frozen=True, kw_only=True, eq=False)
class AuditRun:
    """One or several calls of a model."""

    calls: Callable[[Call], Any]
    """Makes them, each by the function that it is given."""
    rows: int
    """Of the last call."""
    length: int = 0
    """Sites of the last call; 0 if its input has none."""
    training: bool = False
    """In train mode, where every dropout is the identity."""
    live: bool = False
    """Leaves dropout on where a model has it on in eval mode."""
    seed: int = 0
    shared: bool = False
    """Whether others are within it, so that the output of every call is kept."""
    within: tuple[AuditRun, int] | None = None
    """A longer run that begins with the same calls, and which of its calls is this one's last."""


def single(batch: CallBatch, sequence: Sequence | None = None, **options: Any) -> AuditRun:
    """Return the run that is one call.

    Args:
        batch: What the model is called with.
        sequence: Whose sites are meant; the first by default.
        options: Further fields of `AuditRun`.
    """
    own = [each for each in batch.sequences if sequence is None or each.key == sequence.key]
    length = own[0].length if own else 0
    return AuditRun(calls=lambda call: call(batch), rows=batch.rows, length=length, **options)


class Runner:
    """Makes runs and remembers what they gave."""

    def __init__(self, model: nn.Module, moved: dict[str, Tensor], *, name: str = "batch") -> None:
        self.model = model
        self.name = name
        """What the caller's own argument is called."""
        self.silent = False
        """Whether dropout is left out, because the model has it on in eval mode."""
        self._moved = moved
        self._snapshot = MemorySnapshot(model)
        self._wide: Callable[[], dict[str, Tensor]] | None = None
        self._outputs: dict[tuple[AuditRun, bool], list[Tensor]] = {}
        self._calls: dict[tuple[AuditRun, bool], list[list[Tensor]]] = {}
        """What every call of a run gave, where another run may want it; else of the last alone."""

    def outputs(self, run: AuditRun, *, precise: bool = False) -> list[Tensor]:
        """Return the floating-point tensors of the last call's output."""
        key = run, precise
        if key not in self._outputs and run.within is not None:
            whole, number = run.within
            with suppress(ValueError):  # what comes later may fail where this run does not
                self.outputs(whole, precise=precise)
                self._outputs[key] = self._calls[whole, precise][number]
        if key not in self._outputs:
            self._make(run, precise)
            self._outputs[key] = self._calls[key][-1]
        return self._outputs[key]

    def trace(self, run: AuditRun, *, precise: bool = True) -> ModuleCall:
        """Return every module call of the last call."""
        with tracing(self.model) as tracer:
            self._make(run, precise)
        if tracer.root is None:
            raise ValueError("`model` must be called by the run, got no call")
        return tracer.root

    def silence(self) -> None:
        """Leave dropout out of all runs that are not live, and forget what was run before."""
        self.silent = True
        self._outputs.clear()
        self._calls.clear()

    def close(self) -> None:
        """Leave the model's memory as it was."""
        self._snapshot.restore()

    def _make(self, run: AuditRun, precise: bool) -> None:
        self._snapshot.restore()
        _seed(run.seed)
        weights = dict(self._moved)
        if precise:
            self._wide = self._wide or wide_weights(self.model)
            weights = self._wide() | {name: widen(each) for name, each in weights.items()}
        calls: list[list[Tensor]] = []

        def call(batch: CallBatch) -> Any:
            args, named = batch.arguments
            if precise:
                args = tuple(widen(each) for each in args)
                named = {name: widen(each) for name, each in named.items()}
            output = call_model(self.model, args, named, weights=weights, name=self.name)
            given = [each.detach().clone() for each in floats(output)]
            calls[:] = [*calls, given] if run.shared else [given]
            return output

        with ExitStack() as stack:
            stack.enter_context(without_fast_path())
            if run.training or (self.silent and not run.live):
                stack.enter_context(NoDropout())
            if precise:
                stack.enter_context(in_float64())
            if run.training:
                self.model.train()
            run.calls(call)
        self._calls[run, precise] = calls


def _seed(seed: int) -> None:
    """Seed as `torch.manual_seed` does, which also formats the stack of every call: slow."""
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_available():
        torch.cuda.manual_seed_all(seed)
