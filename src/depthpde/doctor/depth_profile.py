"""Trajectory: what was measured along the depth of a network, labelled, and what was not."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from depthpde.doctor.not_measured import NotMeasured
from depthpde.errors import check_name

Value = float | list[float]
"""One number a label, or several (one a head, one a band)."""


@dataclass(frozen=True, slots=True)
class DepthSeries:
    """One measure by depth, by block or by layer."""

    name: str
    """``group.measure``, as in ``drift.cosine``."""
    words: str
    """What it is, in a few words."""
    labels: tuple[str, ...]
    """``embedding, block 1, …`` for fields, ``block 1, …`` for blocks, or a layer's own name."""
    values: tuple[Value, ...]
    baseline: tuple[Value, ...] | None = None
    """The same of a random network of the same shapes, where that is informative."""

    def __getitem__(self, label: str | int) -> Value:
        """Give the value at a label, or at a place in the order."""
        if isinstance(label, int):
            return self.values[label]
        return self.values[self.labels.index(check_name("label", label, self.labels))]

    def __iter__(self) -> Iterator[tuple[str, Value]]:
        """Give label and value one after the other."""
        return iter(zip(self.labels, self.values, strict=True))

    def __len__(self) -> int:
        return len(self.values)

    def __str__(self) -> str:
        """Print the values under their labels."""
        wide = max((len(label) for label in self.labels), default=0)
        rows = [f"  {label:<{wide}}  {format_number(value)}" for label, value in self]
        if self.baseline is not None:
            pairs = zip(rows, self.baseline, strict=True)
            rows = [f"{row}   (random network: {format_number(value)})" for row, value in pairs]
        return "\n".join((f"{self.name}: {self.words}", *rows))

    def singles(self) -> list[tuple[str, float]]:
        """List label and number where there is one number a label and it is finite."""
        pairs = ((label, value) for label, value in self if isinstance(value, float))
        return [(label, value) for label, value in pairs if math.isfinite(value)]

    def finite(self) -> list[float]:
        """List the plain numbers of the series that are finite."""
        return [each for value in self.values for each in numbers(value) if math.isfinite(each)]


@dataclass(frozen=True, slots=True)
class DepthProfile(Mapping[str, DepthSeries]):
    """Everything that was measured in one pass through a model, by name.

    >>> model = dp.Classifier(dp.ModelConfig(dim=16, vocabulary=9, length=12, classes=3))
    >>> sorted(dp.probe(model, torch.randint(9, (4, 12))))[0]
    'attention.entropy'
    """

    model: str
    """The model's class."""
    family: str
    blocks: int
    parameters: int
    sequences: int
    """How many were looked at, those of padding alone left out."""
    tokens: int
    causal: bool
    seconds: float
    """What the measurement took."""
    faithful: bool | None
    """Whether the probed outputs equal the unprobed ones to the bit; None if it was not checked."""
    series: dict[str, DepthSeries] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    """What could not be measured, and why."""
    notes: tuple[str, ...] = ()
    """What a reader must know, such as sequences that were left out."""
    facts: dict[str, Any] = field(default_factory=dict)
    """Single findings: how a leak happened, how an insertion changed the output."""

    def __getitem__(self, name: str) -> DepthSeries:
        """Return a series by name; an error says why it is missing, or lists those that exist."""
        group = name.split(".")[0]
        reason = self.missing.get(name, self.missing.get(group))
        if name not in self.series and reason is not None:
            raise ValueError(f"`{name}` was not measured: {reason}")
        return self.series[check_name("name", name, self.series)]

    def __contains__(self, name: object) -> bool:
        return name in self.series

    def __iter__(self) -> Iterator[str]:
        return iter(self.series)

    def __len__(self) -> int:
        return len(self.series)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; what is not finite becomes None."""
        plain = {
            name: {
                "words": each.words,
                "labels": list(each.labels),
                "values": _plain(each.values),
                "baseline": None if each.baseline is None else _plain(each.baseline),
            }
            for name, each in self.series.items()
        }
        about = ("model", "family", "blocks", "parameters", "sequences", "tokens", "causal")
        return {
            **{name: getattr(self, name) for name in about},
            "seconds": self.seconds,
            "faithful": self.faithful,
            "series": plain,
            "missing": self.missing,
            "notes": list(self.notes),
            "facts": _plain(self.facts),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> DepthProfile:
        """Read what `to_dict` wrote; None becomes what is no number."""
        rest = {name: value for name, value in plain.items() if name not in ("series", "notes")}
        series = {
            name: DepthSeries(
                name,
                each["words"],
                tuple(each["labels"]),
                _numbers(each["values"]),
                None if each["baseline"] is None else _numbers(each["baseline"]),
            )
            for name, each in plain["series"].items()
        }
        return cls(series=series, notes=tuple(plain["notes"]), **rest)


def numbers(value: Value) -> list[float]:
    """List the numbers of a value, one or several."""
    return list(value) if isinstance(value, list) else [value]


def format_number(value: Value) -> str:
    """Write a value for a person: three digits."""
    return " ".join("—" if math.isnan(each) else f"{each:.3g}" for each in numbers(value))


def depth_labels(blocks: int) -> tuple[str, ...]:
    """Name the depths of a stream: before the first block, and after each."""
    return ("embedding", *block_labels(blocks))


def block_labels(blocks: int) -> tuple[str, ...]:
    """Name the blocks, from 1."""
    return tuple(f"block {k}" for k in range(1, blocks + 1))


def _numbers(values: Sequence[Any]) -> tuple[Value, ...]:
    """Give the values of a series as they were before they became JSON."""
    return tuple(
        [_number(each) for each in value] if isinstance(value, list) else _number(value)
        for value in values
    )


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, NotMeasured):
        return {"not measured": value.reason}
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(each) for each in value]
    return value
