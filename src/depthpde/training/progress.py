"""Show a run while it goes: a bar on a terminal or in a notebook, a line a point elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

from torch import nn

from depthpde.notebook import live_output
from depthpde.training.config import TrainingConfig
from depthpde.training.history import History, Point
from depthpde.training.optimizer import learned_ratios

BETWEEN = 0.5
"""Seconds between two looks in a notebook."""
WIDTH = 20
"""Characters of a bar."""

if TYPE_CHECKING:
    from rich.progress import Progress as Bar


class Progress:
    """Tell of loss, accuracy, tokens/s, time left and learned ratios; hand it over as `callback`.

    Args:
        model: The model being trained, whose ratios are shown.
        config: Says how many updates there are.
        stream: Where to write; standard error unless given.
    """

    def __init__(
        self, model: nn.Module, config: TrainingConfig, *, stream: TextIO | None = None
    ) -> None:
        self.model, self.config = model, config
        self.stream = stream or sys.stderr
        self._bar: Bar | None = None
        self._show: Callable[[str], None] | None = None
        self._start: tuple[float, int, int] | None = None
        self._told, self._shown = -1, 0.0
        self._ratios = ""

    def __enter__(self) -> Self:
        if self.stream.isatty():
            self._bar = _bar(self.stream)
            self._bar.start()
            self._bar.add_task("training", total=self.config.updates, text="")
        elif self.stream is sys.stderr:
            self._show = live_output()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, history: History, now: Point) -> None:
        """Tell of the update just made."""
        if self._start is None:
            self._start = (time.monotonic(), history.update, history.tokens)
            self._told = len(history.points)
        new = len(history.points) > self._told
        if new or not self._ratios:
            self._told = len(history.points)
            self._ratios = _say_ratios(self.model)
        if self._bar is not None:
            text = "\n".join(self.lines(history, now))
            self._bar.update(self._bar.task_ids[0], completed=history.update, text=text)
        elif self._show is not None:
            if new or time.monotonic() - self._shown > BETWEEN or history.finished:
                self._shown = time.monotonic()
                bar = _drawn(history.update, self.config.updates)
                self._show("\n".join((bar, *self.lines(history, now))))
        elif new:
            front = f"update {history.update}/{self.config.updates}"
            print(" · ".join((front, *self.lines(history))), file=self.stream, flush=True)

    def lines(self, history: History, now: Point | None = None) -> tuple[str, str]:
        """Return what a run reached and how fast it goes: now, or over its last point."""
        point = now or history.points[-1]
        began, update, tokens = self._start or (time.monotonic(), 0, 0)
        seconds = max(time.monotonic() - began, 1e-9)
        reached = [f"loss {point.loss:.4f}", f"accuracy {point.accuracy:.1f} %"]
        if history.best is not None:
            reached.append(f"best {history.best.accuracy:.1f} %")
        done = max(history.update - update, 1)
        left = int((self.config.updates - history.update) * seconds / done)
        pace = [f"{(history.tokens - tokens) / seconds:,.0f} tokens/s"]
        pace.append(f"{left // 60}:{left % 60:02d} left")
        return " · ".join(reached), " · ".join(pace + [self._ratios] * bool(self._ratios))


def _drawn(done: int, total: int) -> str:
    """Return a bar of text."""
    full = WIDTH * done // max(total, 1)
    return f"{'━' * full}{'╌' * (WIDTH - full)} {done}/{total}"


def _bar(stream: TextIO) -> Bar:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bar

    console = Console(file=stream)
    text = TextColumn("{task.fields[text]}")
    return Bar(BarColumn(bar_width=WIDTH), MofNCompleteColumn(), text, console=console)


def _say_ratios(model: nn.Module) -> str:
    ratios = list(learned_ratios(model).values())
    if not ratios:
        return ""
    low, high = min(ratios), max(ratios)
    return f"r {low:.3f}" if len(ratios) == 1 else f"r {low:.3f} … {high:.3f}"
