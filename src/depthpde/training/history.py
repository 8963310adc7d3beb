"""What happened in a run: its points, its validations, and how it ended."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from depthpde.data.batching import Cursor


class Status(StrEnum):
    """The status of a run."""

    RUNNING = "running"
    DONE = "done"
    """All updates made."""
    STOPPED = "stopped"
    """Ended early: validation no longer got better."""
    DIVERGED = "diverged"
    """The loss left its bound; a result, not a crash."""
    INTERRUPTED = "interrupted"
    """SIGINT or SIGTERM; saved, and the same call goes on."""


@dataclass(frozen=True, slots=True)
class Point:
    """The training since the last point."""

    update: int
    """Updates made."""
    epoch: int
    loss: float
    """Mean over the updates since the last point."""
    accuracy: float
    """Percent right over the same, dropout on."""
    rate: float
    """Learning rate of the last update."""
    gradient_norm: float
    """Of the last update, before clipping."""


@dataclass(frozen=True, slots=True)
class Validation:
    """One look at the validation split."""

    update: int
    accuracy: float
    loss: float
    ratios: dict[str, float]
    """Mean of every learned diffusion ratio."""


@dataclass(slots=True)
class History:
    """A run so far; plain numbers only, so a checkpoint can hold it as JSON.

    >>> model = dp.Classifier(dp.ModelConfig(dim=16, blocks=1), task=dp.tasks["listops-mini"])
    >>> split, config = dp.load("listops-mini", "train"), dp.TrainingConfig(updates=2, warmup=0)
    >>> dp.train(model, split, config).finished
    True
    """

    start: str = ""
    """Digest of the first weights."""
    status: Status = Status.RUNNING
    update: int = 0
    """Updates made; where it diverged, the updates before the one that did."""
    cursor: Cursor = field(default_factory=Cursor)
    """The batch that comes next."""
    points: list[Point] = field(default_factory=list)
    validations: list[Validation] = field(default_factory=list)
    best: Validation | None = None
    """The first validation of the greatest accuracy."""
    window: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0, 0.0])
    """Since the last point: sum of losses, updates, labels right, labels."""
    tokens: int = 0
    """Real tokens trained on."""
    seconds: float = 0.0
    """Time spent in all sessions."""
    reason: str = ""
    """Why it diverged, in words."""
    signal: int = 0
    """The signal that interrupted it."""
    notes: list[str] = field(default_factory=list)
    """What a reader must know, such as a checkpoint that was passed over."""

    @property
    def finished(self) -> bool:
        """Whether nothing is left to do."""
        return self.status not in (Status.RUNNING, Status.INTERRUPTED)

    @property
    def exit_code(self) -> int:
        """What a command that ran it returns: 0, or 128 + the signal (130 for Ctrl-C)."""
        return 128 + self.signal if self.status is Status.INTERRUPTED else 0

    @property
    def tokens_per_second(self) -> float:
        """Real tokens trained on in a second, validations and checkpoints included."""
        return self.tokens / self.seconds if self.seconds else 0.0

    def validations_since_best(self) -> int:
        """Return how many validations came after the best one."""
        if self.best is None:
            return 0
        return sum(each.update > self.best.update for each in self.validations)

    def to_dict(self) -> dict[str, Any]:
        """Return the history as plain JSON values."""
        return asdict(self) | {"status": self.status.value, "cursor": list(self.cursor)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> History:
        """Return the history that `to_dict` wrote."""
        best = values["best"]
        return cls(
            **values
            | {
                "status": Status(values["status"]),
                "cursor": Cursor(*values["cursor"]),
                "points": [Point(**each) for each in values["points"]],
                "validations": [Validation(**each) for each in values["validations"]],
                "best": Validation(**best) if best else None,
            }
        )
