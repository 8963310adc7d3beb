"""Detector: does one of many series leave its own trend?

    z_t = (x_t − median) / max(1.4826 · MAD, floor),     x = log of the number, window before

A series that rises by more than `limit` in a row of readings moved. Each is compared with its
own past only, so no scale is assumed; the log makes a doubling the same step everywhere.
"""

from __future__ import annotations

import math
import statistics
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Alarm:
    """The first series that left its trend, and those that did so in the same reading.

    >>> alarm = dp.Alarm(120, "gradient of block 2", 9.0, 14.0)
    >>> str(alarm)
    'update 120: gradient of block 2 moved first, ×14 of its usual size (9 deviations)'
    """

    update: int
    series: str
    """What moved first."""
    deviations: float
    times: float
    """The number against its median before."""
    others: tuple[str, ...] = ()
    """What else moved in the same reading, the farthest first."""

    def __str__(self) -> str:
        """Say it in one line."""
        more = f"; then {', '.join(self.others[:3])}" * bool(self.others)
        moved = f"×{self.times:.3g} of its usual size ({self.deviations:.2g} deviations)"
        return f"update {self.update}: {self.series} moved first, {moved}{more}"


@dataclass(slots=True)
class Detector:
    """Takes readings and gives an alarm when a series leaves its trend.

    Args:
        limit: Deviations from which on a reading is out of its trend.
        floor: Least deviation of the log that counts as one: 0.1 is ten per cent.
        window: Readings that make the trend.
        first: Readings before anything is judged.
        row: Readings out of trend, one after the other, that make an alarm.
    """

    limit: float = 6.0
    floor: float = 0.1
    window: int = 40
    first: int = 15
    row: int = 2
    _past: dict[str, deque[float]] = field(default_factory=dict)
    _out: dict[str, int] = field(default_factory=dict)

    def add(self, update: int, values: Mapping[str, float]) -> Alarm | None:
        """Take the numbers of one update; return an alarm if one of them left its trend.

        Args:
            update: Its number.
            values: The numbers by the name of their series; all are positive, or not finite.
        """
        moved: list[tuple[float, float, str]] = []
        for name, value in values.items():
            found = self._judge(name, value)
            if found is not None:
                moved.append((*found, name))
        if not moved:
            return None
        moved.sort(reverse=True)
        deviations, times, name = moved[0]
        return Alarm(update, name, deviations, times, tuple(each[2] for each in moved[1:]))

    @property
    def calm(self) -> bool:
        """Whether every series keeps its trend."""
        return not any(self._out.values())

    def settle(self) -> None:
        """Forget what was out of trend, as after a rollback; the trends stay."""
        self._out.clear()

    def _judge(self, name: str, value: float) -> tuple[float, float] | None:
        past = self._past.setdefault(name, deque(maxlen=self.window))
        if not math.isfinite(value):
            return (math.inf, math.inf) if past else None
        x = math.log(max(value, 1e-30))
        out = None
        if len(past) >= self.first:
            middle = statistics.median(past)
            spread = 1.4826 * statistics.median(abs(each - middle) for each in past)
            deviations = (x - middle) / max(spread, self.floor)
            self._out[name] = self._out.get(name, 0) + 1 if deviations > self.limit else 0
            if self._out[name] >= self.row:
                out = (deviations, math.exp(min(x - middle, 700.0)))
        if self._out.get(name, 0) == 0:
            past.append(x)  # what is out of trend is no part of it
        return out
