"""SIGINT and SIGTERM as a wish to stop, granted between two updates."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self

CAUGHT = (signal.SIGINT, signal.SIGTERM)


class Interruption:
    """Note the first SIGINT or SIGTERM instead of dying of it; a second Ctrl-C acts as always.

    A second SIGTERM is noted too: schedulers send several, and the state is being saved.
    Outside the main thread Python allows no handlers, and nothing is caught.
    """

    def __init__(self) -> None:
        self.signal = 0
        """The signal that came, or 0."""
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = {each: signal.signal(each, self._note) for each in CAUGHT}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for each, handler in self._before.items():
            signal.signal(each, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.signal = number
        signal.signal(signal.SIGINT, self._before[signal.SIGINT])
