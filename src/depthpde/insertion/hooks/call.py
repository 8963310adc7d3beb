"""The running call of a block: what it brought, and what its stream is still owed.

Several threads may run one block at once, a block may run inside itself, and activation
checkpointing runs it again in the backward pass, possibly on another thread. So the state belongs
to the call: each thread has a stack of its own.
"""

from __future__ import annotations

import threading

from depthpde.insertion.recorder import Given
from depthpde.layers.decoding import Window
from depthpde.shapes import Field, Mask, Segments


class Call:
    """What one call of a block brought, and what its stream is still owed.

    Attributes of the class until they are set: a call that brings little is made at little cost.
    """

    field: Field | None = None
    """What entered the block, where the call brought a batch."""
    valid: Mask | None = None
    segments: Segments | None = None
    windows: dict[str, Window] | None = None
    """What layers have read of a sequence that is decoded; None where nothing is decoded."""
    seen: int = 0
    """How many sites were read before."""
    pending: Field | None = None
    given: Given | None = None
    """The arguments, where the call is that of the whole model."""

    @property
    def sites(self) -> tuple[int, int] | None:
        """Batch and length, where the call brought a batch."""
        return None if self.field is None else (self.field.shape[0], self.field.shape[1])


class Running(threading.local):
    """The calls of one block, or one model, that run in this thread, the innermost last.

    A copy of a model runs no call: there it is empty, and so it is after unpickling.
    """

    def __init__(self) -> None:
        # Runs once in every thread. The list is changed, never replaced: torch.compile loses what
        # is assigned to a thread-local attribute, and breaks the graph at a context variable.
        self.calls: list[Call] = []

    @property
    def call(self) -> Call | None:
        """The innermost call; None outside of any."""
        return self.calls[-1] if self.calls else None

    def begin(self) -> Call:
        """Begin a call, inside the one that runs if there is one."""
        call = Call()
        self.calls.append(call)
        return call

    def end(self) -> None:
        """End the innermost call; nothing of it is kept alive."""
        if self.calls:
            self.calls.pop()

    def __reduce__(self) -> tuple[type[Running], tuple[()]]:
        """Copy and pickle as empty."""
        return Running, ()
