"""The doctor in other people's trainers: Hugging Face's and Lightning's.

trainer.add_callback(DoctorCallback(every=200))              # transformers.Trainer
Trainer(callbacks=[lightning_doctor(every=200)])             # lightning
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from depthpde.doctor.alarms.live import BUDGET, EVERY, AlarmStop, Doctor
from depthpde.insertion.family import Family

FILE = "doctor.jsonl"
"""The history's name in a run's folder."""


class DoctorCallback:
    """Watches a training by `transformers.Trainer`.

    The history goes to ``doctor.jsonl`` in the trainer's output folder. The trainer looks
    events up by name; those that do not concern a doctor are answered by a no-op, so that
    transformers need not be imported here.

    >>> callback = dp.DoctorCallback(every=200)   # trainer.add_callback(callback)

    Args:
        every: Updates from one look to the next.
        path: Where the history goes instead.
        on_alarm: ``"stop"`` lets an alarm end the training, ``"rollback"`` puts model and optimizer
            back to before it; ``"log"`` only says what moved first.
        sink: Takes the readings, such as what `dp.tracker` gives.
        budget: Share of the training time that looking may take; None for no limit.
        family: The description of a family that is not known.
    """

    def __init__(
        self,
        *,
        every: int = EVERY,
        path: str | Path | None = None,
        on_alarm: str = "log",
        sink: Callable[[int, Mapping[str, float]], None] | None = None,
        budget: float | None = BUDGET,
        family: Family | None = None,
    ) -> None:
        self.every, self.path, self.budget, self.family = every, path, budget, family
        self.on_alarm, self.sink = on_alarm, sink
        self.doctor: Doctor | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **event: Any) -> None:
        """Begin to watch, in the process that leads."""
        if state.is_world_process_zero:
            path = self.path or Path(args.output_dir) / FILE
            self.doctor = Doctor(
                event["model"],
                every=self.every,
                path=path,
                on_alarm=self.on_alarm,
                optimizer=event.get("optimizer"),
                sink=self.sink,
                budget=self.budget,
                family=self.family,
            )
            self.doctor.__enter__()

    def on_step_end(self, args: Any, state: Any, control: Any, **event: Any) -> None:
        """Look, where it is time."""
        if self.doctor is not None:
            try:
                self.doctor.step(state.global_step)
            except AlarmStop:  # the trainer ends by itself, and saves what it saves
                control.should_training_stop = True

    def on_train_end(self, args: Any, state: Any, control: Any, **event: Any) -> None:
        """Say what it cost."""
        if self.doctor is not None:
            self.doctor.close()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("on_"):
            return _answer_nothing
        raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")


def lightning_doctor(
    *,
    every: int = EVERY,
    path: str | Path | None = None,
    on_alarm: str = "log",
    sink: Callable[[int, Mapping[str, float]], None] | None = None,
    budget: float | None = BUDGET,
    family: Family | None = None,
) -> Any:
    """Build a Lightning callback that watches a training.

    The history goes to ``doctor.jsonl`` in the trainer's log folder, or its root folder.

    >>> callback = dp.lightning_doctor(every=200)   # Trainer(callbacks=[callback])

    Args:
        every: Batches from one look to the next.
        path: Where the history goes instead.
        on_alarm: As `DoctorCallback` takes it.
        sink: Takes the readings, such as what `dp.tracker` gives.
        budget: Share of the training time that looking may take; None for no limit.
        family: The description of a family that is not known.
    """
    base: Any = _lightning().Callback

    class LightningDoctor(base):  # type: ignore[misc]
        doctor: Doctor | None = None

        def on_train_start(self, trainer: Any, pl_module: Any) -> None:
            if trainer.is_global_zero:
                folder = trainer.log_dir or trainer.default_root_dir
                where = path or Path(folder) / FILE
                self.doctor = Doctor(
                    pl_module,
                    every=every,
                    path=where,
                    on_alarm=on_alarm,
                    optimizer=next(iter(trainer.optimizers), None),
                    sink=sink,
                    budget=budget,
                    family=family,
                )
                self.doctor.__enter__()

        def on_train_batch_end(self, trainer: Any, pl_module: Any, *event: Any) -> None:
            if self.doctor is not None:
                try:
                    self.doctor.step()
                except AlarmStop:
                    trainer.should_stop = True

        def on_train_end(self, trainer: Any, pl_module: Any) -> None:
            if self.doctor is not None:
                self.doctor.close()

        def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
            self.on_train_end(trainer, pl_module)

    return LightningDoctor()


def _answer_nothing(*args: Any, **event: Any) -> None:
    """Ignore an event that does not concern a doctor."""


def _lightning() -> Any:
    for name in ("lightning.pytorch", "pytorch_lightning"):
        try:
            return import_module(name)
        except ImportError:
            continue
    raise ImportError("`lightning_doctor` needs Lightning; use pip install 'lightning>=2.6.4'")
