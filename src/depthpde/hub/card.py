"""model_card(model, found) → Markdown: task, data, and metrics with their intervals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from depthpde.comparison.report import ComparisonReport
from depthpde.models.card import Metric, write_card
from depthpde.records.record import Record
from depthpde.records.scores import Endpoint
from depthpde.records.statistics.paired import mean_interval

NORMAL = 1.959964
WORDS = {"accuracy": "test accuracy, %", "loss": "test loss, nats"}


def model_card(
    model: nn.Module, found: Record | ComparisonReport | None = None, *, label: str | None = None
) -> str:
    """Return the card that `push_to_hub` takes, from what a run or a comparison recorded.

    The interval of a run's accuracy is over its test examples (p ± 1.96 √(p(1 − p)/n)), that of a
    comparison over seeds.

    >>> model = dp.Classifier(dp.ModelConfig(dim=16, vocabulary=9, length=12, classes=3))
    >>> print(dp.model_card(model).splitlines()[1])
    library_name: depthpde

    Args:
        model: What is pushed.
        found: What `execute` or `compare` returned; None for a card without metrics.
        label: Which variant of a comparison it is; its last one unless given.
    """
    if isinstance(found, Record):
        return _of_record(model, found)
    if isinstance(found, ComparisonReport):
        return _of_comparison(model, found, label)
    if found is not None:
        raise ValueError(
            f"`found` must be what execute or compare returned, got a {type(found).__name__}; "
            "leave it out for a card without metrics"
        )
    return write_card(model)


def _of_record(model: nn.Module, record: Record) -> str:
    result = record.result
    if result is None or result.get("test") is None:
        raise ValueError(
            f"`found` must be a finished run with a test, got run {record.id}, {record.state}; "
            "let it finish first"
        )
    test, trivial = result["test"], result.get("trivial", {})
    data = [f"test examples judged: {test['targets']:,}"]
    if digest := result.get("data", {}).get("manifest_sha256"):
        data.append(f"SHA-256 of the prepared data's manifest: `{digest}`")
    data += [f"without a model, {name} reaches {line:.1f} %" for name, line in trivial.items()]
    notes = [
        f"run `{record.id}`, seed {record.seed}, {result['update']:,} updates, {result['status']}",
        "one seed: the interval says how far the test examples decide, not how far the seed does",
    ]
    return write_card(
        model,
        about=f"Variant: {record.label}.",
        task=record.task,
        data=data,
        metrics=_measured(test),
        notes=notes,
    )


def _measured(test: Mapping[str, Any]) -> list[Metric]:
    share, count = test["accuracy"] / 100.0, test["targets"]
    half = 100.0 * NORMAL * (share * (1.0 - share) / count) ** 0.5
    accuracy = Metric(
        kind="accuracy",
        words=WORDS["accuracy"],
        value=test["accuracy"],
        low=max(0.0, test["accuracy"] - half),
        high=min(100.0, test["accuracy"] + half),
        basis=f"{count:,} examples",
    )
    return [accuracy, Metric(kind="loss", words=WORDS["loss"], value=test["loss"])]


def _of_comparison(model: nn.Module, report: ComparisonReport, label: str | None) -> str:
    entrants = {each.label: each for each in report.entrants}
    chosen = entrants.get(label or report.entrants[-1].label)
    if chosen is None:
        raise ValueError(f"`label` must be one of {', '.join(entrants)}, got {label!r}")
    scores = list(chosen.scores.values())
    name = Endpoint(report.endpoint).value
    if not scores:
        raise ValueError(
            f"`label` must be of a variant with a test {name}, got {chosen.label!r} with none, "
            f"diverged: {chosen.diverged}; name another one, or train it more gently"
        )
    ends = mean_interval(scores) if len(scores) > 1 else None
    metric = Metric(
        kind=name,
        words=WORDS[name],
        value=chosen.mean,
        low=None if ends is None else ends.low,
        high=None if ends is None else ends.high,
        basis=f"{len(scores)} seeds",
    )
    return write_card(
        model,
        about=f"Variant: {chosen.label}. {chosen.words}".rstrip(),
        task=report.task,
        data=["numbers are those of the comparison's own test split"],
        metrics=[metric],
        notes=[f"compared with {report.baseline.label!r}: {each}" for each in report.sentences()]
        + report.diverged()
        + [f"next: {report.advice()}"],
    )
