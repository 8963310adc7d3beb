"""The doctor during training, in any loop and in our own trainer.

    with Doctor(model) as doctor:            # any loop
        for batch in batches:
            loss(model, batch).backward()
            doctor.step()                    # after backward; before or after the update

Every so many updates one training pass is listened to (gradients by depth, before clipping) and
the same batch is probed. In between nothing is attached, so nothing is slowed down. What it costs
is measured, kept under a budget, and printed. Training itself is the same to the bit.
"""

from __future__ import annotations

import inspect
import json
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import isfinite
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from torch import Tensor, nn
from torch.optim import Optimizer

from depthpde.doctor.alarms.detector import Alarm, Detector
from depthpde.doctor.alarms.rollback import Rollback
from depthpde.doctor.alarms.sample import Sample, SamplePoints
from depthpde.doctor.checks.inspection import inspect_learning, inspect_weights
from depthpde.doctor.checks.motion import Motion
from depthpde.doctor.diagnosis import Diagnosis, judge
from depthpde.doctor.model_map import model_map
from depthpde.doctor.probe import probe
from depthpde.doctor.thresholds import Grade, Thresholds
from depthpde.errors import check_name, check_positive, check_range
from depthpde.insertion.calling import check_has_weights
from depthpde.insertion.compiled import check_not_compiled
from depthpde.insertion.family import Family

EVERY = 200
"""Updates from one look to the next, by default."""
PULSE = 20
"""Updates from one reading of gradients, updates and the stream to the next, by default."""
FIRST_PULSE, FIRST_READINGS = 3, 60
"""The first readings come more often: nothing is judged before a trend is known."""
BUDGET = 0.05
"""Share of the training time that looking may take, by default."""
MOST_ROLLBACKS = 3
"""How often a training is put back before it is stopped."""
SEQUENCES, TOKENS = 8, 512
"""Sequences of a batch that are probed, at most; of long ones fewer, but two."""
LIVE_GROUPS = ("drift", "rank", "energy", "attention")


def log_to_stderr(line: str) -> None:
    """Print to standard error, where progress goes."""
    print(line, file=sys.stderr, flush=True)


class AlarmStop(RuntimeError):  # noqa: N818 - it is a stop that was asked for, no error
    """A training that its doctor stopped, as it was told to.

    >>> issubclass(dp.AlarmStop, RuntimeError)
    True
    """


class Doctor:
    """Watches a training.

    Also what `depthpde.train` takes as ``callback=``: it may be called with a history and a point.

    >>> model = dp.Classifier(dp.ModelConfig(dim=16, vocabulary=9, length=12, classes=3))
    >>> doctor = dp.Doctor(model, every=200)

    Args:
        model: The model in training; not compiled yet, and not wrapped for several processes.
        every: Updates from one look to the next; the first one it is there for is looked at too:
            update 1 within ``with``, update 2 where a trainer reports update 1 first.
        path: File that takes one JSON line a look, such as ``doctor.jsonl`` in a run's folder.
        pulse: Updates from one short reading to the next: gradients and updates by part, the size
            of the stream. The first 60 readings come every 3 updates where this is more. The first
            series that leaves its own trend is the alarm; None reads nothing.
        on_alarm: ``"log"`` says what moved first; ``"stop"`` also ends the training, by raising
            `AlarmStop` from `step`; ``"rollback"`` puts model and optimizer back to the last
            reading at which every series kept its trend, and stops at the fourth time. Nothing is
            ever stopped or put back without it.
        optimizer: What updates the model, for ``on_alarm="rollback"``.
        sink: Takes an update and numbers by name, as a tracker's sink does: the readings, and
            ``doctor/alarm`` at an alarm.
        budget: Share of the training time that looking may take; a look that would take more, if
            it costs what the last one did, is put off. None never puts off.
        family: The description of a family that is not known.
        thresholds: Where a condition begins; the calibrated ones by default.
        log: Called with one line when the grade changes, and with the cost at the end.
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        every: int = EVERY,
        path: str | Path | None = None,
        pulse: int | None = PULSE,
        on_alarm: str = "log",
        optimizer: Optimizer | None = None,
        sink: Callable[[int, Mapping[str, float]], None] | None = None,
        budget: float | None = BUDGET,
        family: Family | None = None,
        thresholds: Thresholds | None = None,
        log: Callable[[str], None] = log_to_stderr,
    ) -> None:
        self.every = check_positive("every", every)
        self.pulse = None if pulse is None else check_positive("pulse", pulse)
        self.on_alarm = check_name("on_alarm", on_alarm, ("log", "stop", "rollback"))
        if on_alarm == "rollback" and optimizer is None:
            raise ValueError(
                "`on_alarm='rollback'` must know what updates the model, got no optimizer; pass "
                "optimizer=…"
            )
        self._copy = None if on_alarm != "rollback" else Rollback(model, optimizer)  # type: ignore[arg-type]
        self.rollbacks: list[tuple[int, int]] = []
        self.sink, self.detector = sink, Detector()
        self.budget = None if budget is None else check_range("budget", budget, 1e-6, 1.0)
        check_not_compiled(model, "a doctor begins to watch")
        check_has_weights(model, "a doctor begins to watch")
        self.model_map = model_map(model, family)
        self._motion, self._readings = Motion(self.model_map), Motion(self.model_map)
        self._points = SamplePoints(self.model_map)
        self.family, self.thresholds, self.log = family, thresholds or Thresholds.read(), log
        self.path = None if path is None else Path(path)
        self.alarm: Alarm | None = None
        self.history: list[dict[str, Any]] = []
        self.diagnosis: Diagnosis | None = None
        self.update = 0
        self.spent = 0.0
        self._last = 0.0
        self._told = 0
        self._began: float | None = None
        self._sample: Sample | None = None
        self._probing = False
        self._count = 0  # readings

    @property
    def overhead(self) -> float:
        """Seconds spent looking, against seconds of training without it."""
        return self._share(self.spent)

    def __enter__(self) -> Self:
        self._began = time.perf_counter()
        self._listen(probing=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __call__(self, history: Any, point: Any) -> None:
        """Receive an update from `depthpde.train`; the last one closes the doctor."""
        self.step(point.update)
        if history.finished:
            self.close()

    def step(self, update: int | None = None) -> None:
        """Receive that a backward pass was made.

        Args:
            update: Its number; counted here if not given.
        """
        if self._began is None:
            self.__enter__()
        self.update = self.update + 1 if update is None else update
        if self._sample is not None and self._sample.call is not None:
            self._read(self._sample)
            if self._probing:
                self._look()
            self._leave()
            if self.alarm is not None and self.alarm.update == self.update:
                self._ring(self.alarm)
            elif self._copy is not None and self.detector.calm and self._due(self._copy):
                self._copy.keep(self.update)
        following = self.update + 1
        if following % self.every == 0 and self._can_afford():
            self._listen(probing=True)
        elif self._is_read(following):
            self._listen(probing=False)

    def _is_read(self, update: int) -> bool:
        """Tell whether a reading is due: the first ones close together, then every `pulse`."""
        if self.pulse is None:
            return False
        first = self._count < FIRST_READINGS
        return update % (min(self.pulse, FIRST_PULSE) if first else self.pulse) == 0

    def _due(self, kept: Rollback) -> bool:
        """Tell whether it is time for another copy of the model."""
        return kept.update is None or self.update - kept.update >= self.every

    def close(self) -> None:
        """Remove every hook and log the cost."""
        self._leave()
        if len(self.history) > self._told:
            self._told = len(self.history)
            self.log(self.summary())

    def summary(self) -> str:
        """Say how often it looked and what that cost."""
        looks = f"{len(self.history)} look{'s' * (len(self.history) != 1)}"
        cost = f"{self.spent:.2f} s, {100 * self.overhead:.1f} % of the training time"
        last = ""
        if self.diagnosis is not None:
            when = f"update {self.history[-1]['update']} of {self.update}"
            last = f"; {self.diagnosis.grade.value} at the last, {when}"
        return f"doctor: {looks}, every {self.every} updates, took {cost}{last}"

    def _can_afford(self) -> bool:
        """Tell whether a look that costs what the last one did keeps within the budget."""
        return self.budget is None or self._share(self.spent + self._last) <= self.budget

    def _share(self, seconds: float) -> float:
        """Compare seconds with those of training without the looks."""
        if self._began is None:
            return 0.0
        return seconds / max(time.perf_counter() - self._began - self.spent, 1e-9)

    def _listen(self, *, probing: bool) -> None:
        if self._sample is None:
            began = time.perf_counter()
            self._sample, self._probing = Sample(self._points, stream=probing), probing
            if self.pulse is not None:
                self._readings.mark(self.update)  # one update before the reading, at any interval
            self.spent += time.perf_counter() - began

    def _leave(self) -> None:
        if self._sample is not None:
            self._sample.close()
            self._sample = None

    def _read(self, sample: Sample) -> None:
        """Read gradients, updates and the stream; note the first series that leaves its trend."""
        if self.pulse is None:
            return
        began = time.perf_counter()
        self._count += 1
        values = sample.readings()
        moves = self._readings.ratios(self.update)
        values |= {f"update of {part}": each for part, each in moves.items() if isfinite(each)}
        found = self.detector.add(self.update, values)
        if found is not None and self.alarm is None:
            self.alarm = found
        if self.sink is not None:
            self.sink(self.update, {f"doctor/{name}": each for name, each in values.items()})
        self.spent += time.perf_counter() - began

    def _ring(self, alarm: Alarm) -> None:
        """Say what moved first, tell the tracker, and stop where that was asked for."""
        self.log(f"doctor · {alarm}")
        if self.sink is not None:
            self.sink(alarm.update, {"doctor/alarm": min(alarm.deviations, 1e6)})
        if self.path is not None:
            self._append({"update": alarm.update, "alarm": str(alarm), "moved": alarm.series})
        known = self._copy is not None and self._copy.update is not None
        if self._copy is not None and known and len(self.rollbacks) < MOST_ROLLBACKS:
            self._roll_back(self._copy)
            return
        if self.on_alarm != "log":
            self.close()
            raise AlarmStop(
                f"the training was stopped at {alarm}; go on from a checkpoint before it with half "
                "the learning rate, or without on_alarm='stop'"
            )

    def _roll_back(self, kept: Rollback) -> None:
        """Put model and optimizer back, and go on watching."""
        back = kept.restore()
        self.rollbacks.append((self.update, back))
        self.detector.settle()
        self.alarm = None
        self.log(f"doctor · update {self.update}: back to the weights of update {back}")
        if self.path is not None:
            self._append({"update": self.update, "rollback": back})

    def _look(self) -> None:
        began = time.perf_counter()
        sample = self._sample
        assert sample is not None, "looked for by the caller"
        assert sample.call is not None, "looked for by the caller"
        sample.close()
        module, given = sample.call
        trajectory = probe(
            module,
            same_call(module, given.args, given.named, sample.sites),
            family=self.family,
            groups=LIVE_GROUPS,
            baseline=False,
            check=False,
            light=True,
        )
        gradients = sample.gradients()
        missing = {k: why for k, why in trajectory.missing.items() if k != "self-check"}
        missing["gradient"] = "no backward pass was recorded"
        if "gradient.amplification" in gradients:
            del missing["gradient"]
        facts, moves = self._motion.look(self.update)
        facts["weights"] = inspect_weights(self.model_map)
        facts["frozen"] = inspect_learning(self.model_map)
        trajectory = replace(
            trajectory,
            series=trajectory.series | gradients | moves,
            facts=trajectory.facts | facts,
            missing=missing,
        )
        before = None if self.diagnosis is None else self.diagnosis.grade
        self.diagnosis = judge(trajectory, self.thresholds)
        self._last = time.perf_counter() - began
        self.spent += self._last
        self._write(before)

    def _write(self, before: Grade | None) -> None:
        diagnosis = self.diagnosis
        assert diagnosis is not None, "just made"
        plain = diagnosis.to_dict()
        values = {each["condition"]: each["value"] for each in plain["verdicts"]}
        line = {
            "update": self.update,
            "grade": diagnosis.grade.value,
            "verdicts": {str(each.condition): each.grade.value for each in diagnosis.verdicts},
            "values": values,
            "evidence": {
                str(each.condition): each.evidence
                for each in diagnosis.verdicts
                if each.grade is not Grade.HEALTHY
            },
            "series": {
                name: each["values"] for name, each in plain["trajectory"]["series"].items()
            },
            "unmeasured": diagnosis.unmeasured,
            "seconds": round(self.spent, 4),
            "overhead": round(self.overhead, 5),
        }
        self.history.append(line)
        if self.path is not None:
            self._append(line)
        if diagnosis.grade is not before and (
            before is not None or diagnosis.grade is not Grade.HEALTHY
        ):
            worst = diagnosis.verdicts[0]
            ailing = worst.grade is not Grade.HEALTHY
            what = f" · {worst.threshold.row}: {worst.evidence}" * ailing
            self.log(f"doctor · update {self.update} · {diagnosis.grade.value}{what}")

    def _append(self, line: Mapping[str, Any]) -> None:
        assert self.path is not None, "asked by the caller"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")


def same_call(
    module: nn.Module, args: tuple[Any, ...], named: dict[str, Any], sites: tuple[int, int]
) -> dict[str, Any] | tuple[Any, ...]:
    """Give the arguments of a training call for a look: a few sequences of it, without labels.

    Args:
        module: What was called.
        args: With what.
        named: And what by name.
        sites: Batch and length of its stream; where they are equal, nothing is cut.
    """
    batch, length = sites
    most = max(2, min(SEQUENCES, TOKENS // max(1, length)))

    def few(value: Any) -> Any:
        rows = isinstance(value, Tensor) and value.ndim > 0 and value.shape[0] == batch
        return value[:most].detach() if rows and batch != length else value

    if not named:
        return tuple(map(few, args))
    names = list(inspect.signature(module.forward).parameters)
    whole = {**dict(zip(names, args, strict=False)), **named}
    return {name: few(each) for name, each in whole.items() if name != "labels"}
