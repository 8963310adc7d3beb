"""The card of a repository on the hub: YAML for machines, then what a reader needs to know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import yaml  # type: ignore[import-untyped]
from torch import nn

from depthpde import __version__

UNMEASURED = (
    "Nothing was measured, or nothing was said: judge it on your own data before you use it."
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Metric:
    """One number that was measured, with its interval."""

    kind: str
    """The hub's name for it: accuracy, loss."""
    words: str
    """What it is: test accuracy in percent."""
    value: float
    low: float | None = None
    high: float | None = None
    """The ends of its 95 % interval, where there is one."""
    basis: str = ""
    """What the interval is over: 4,000 examples, or 6 seeds."""

    @property
    def interval(self) -> str:
        """The interval in words; empty where there is none."""
        return "" if self.low is None else f"[{self.low:.4g}, {self.high:.4g}]"


def write_card(
    model: nn.Module,
    *,
    about: str = "",
    load: str = "",
    task: str | None = None,
    data: Sequence[str] = (),
    metrics: Sequence[Metric] = (),
    notes: Sequence[str] = (),
) -> str:
    """Return the Markdown of a card: what it is, how to load it, data, metrics with intervals.

    Args:
        model: Its class and size are named.
        about: What it is; the model's config unless given.
        load: The line that loads it; `from_pretrained` of its class unless given.
        task: What it was trained for.
        data: One line for each fact about the data.
        metrics: What was measured.
        notes: What a reader must know, such as verdicts on a comparison.
    """
    kind, count = type(model).__name__, sum(each.numel() for each in model.parameters())
    lines = [
        "---",
        yaml.safe_dump(
            _metadata(kind, task, metrics), sort_keys=False, allow_unicode=True
        ).rstrip(),
        "---",
        f"# {kind}{f' on {task}' if task else ''}",
        "",
        about or _about(model),
        "",
        f"{count:,} parameters, saved by depthpde "
        f"{__version__} as safetensors and JSON; loading it runs no code of this repository.",
        "",
        "```python",
        "import depthpde as dp",
        "",
        load or f'model = dp.{kind}.from_pretrained("owner/name")',
        "```",
        "",
        "## Task and data",
        "",
        *(f"- {line}" for line in (([f"task: {task}"] if task else []) + list(data))),
        *([] if task or data else ["Not said."]),
        "",
        "## Metrics",
        "",
        *_table(metrics),
    ]
    if notes:
        lines += ["", "## What to know", "", *(f"- {line}" for line in notes)]
    return "\n".join(lines) + "\n"


def _about(model: nn.Module) -> str:
    config = getattr(model, "config", None)
    positions = [str(each) for each in getattr(config, "positions", ())]
    if not positions:
        return "A Transformer without a placed layer."
    layer = getattr(config, "layer", None)
    return f"A Transformer with {getattr(layer, 'kind', layer)} placed at {', '.join(positions)}."


def _table(metrics: Sequence[Metric]) -> list[str]:
    if not metrics:
        return [UNMEASURED]
    rows = [
        f"| {each.words} | {each.value:.4g} | {each.interval or '–'} | {each.basis or '–'} |"
        for each in metrics
    ]
    return ["| metric | value | 95 % interval | over |", "|---|--:|---|---|", *rows]


def _metadata(kind: str, task: str | None, metrics: Sequence[Metric]) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        "library_name": "depthpde",
        "tags": ["depthpde", "diffusion", "pde"],
    }
    if metrics and task:
        measured = [
            {
                "type": each.kind,
                "name": f"{each.words} {each.interval}".strip(),
                "value": each.value,
            }
            for each in metrics
        ]
        where = {"type": "other", "name": task}
        result = {"task": where, "dataset": {"type": task, "name": task}, "metrics": measured}
        metadata["model-index"] = [{"name": kind, "results": [result]}]
    return metadata
