"""Early warning: small runs driven to instability in six ways, and as many healthy ones.

They are watched as a doctor watches by default. What drives a run begins at update 60, while
readings still come every three updates, or 300 later, when they come every twenty.

The loss leaves its trend where it is above the median of the fifty updates before by more than
six deviations (at least 0.25 nats) for five updates in a row, or is no number. An alarm counts as
early if it comes before that; the lead is the number of updates between the two.
"""

from __future__ import annotations

import math
import statistics
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import depthpde as dp
from depthpde.doctor.alarms.detector import Detector
from depthpde.layers.stabilizer import Stabilizer
from depthpde.models.language import LanguageModel

UPDATES, WORDS, LENGTH = 160, 24, 10
LATER = 300
"""Updates by which the second half of the runs is driven later."""
WAYS = (
    "rate too high",
    "no warm-up",
    "bad initialisation",
    "no norms",
    "corrupted batches",
    "Adam's β₂",
)
HEALTHY = "healthy"
WATCHED = ("doctor", "gradient norm alone", "update norm alone", "loss alone")


@dataclass
class Run:
    """One run: its readings and its loss."""

    way: str
    seed: int
    later: int = 0
    losses: list[float] = field(default_factory=list)
    readings: dict[int, dict[str, float]] = field(default_factory=dict)


def model_of(way: str, seed: int) -> nn.Module:
    norm = "none" if way == "no norms" else ("pre", "post")[seed % 2]
    shape = dp.ModelConfig(
        dim=(16, 24)[seed // 2 % 2],
        blocks=2,
        heads=4,
        vocabulary=WORDS,
        length=LENGTH,
        stabilizer=Stabilizer(norm=norm),
    )
    model = LanguageModel(shape, generator=torch.Generator().manual_seed(seed))
    if way == "bad initialisation":
        with torch.no_grad():
            for weight in model.parameters():
                if weight.ndim > 1:
                    weight.mul_(3.0)
    return model


def rate_of(way: str, update: int, seed: int, later: int = 0) -> float:
    """Give the learning rate: what is driven to instability is driven slowly."""
    base = 2e-3
    warm = 1.0 if way == "no warm-up" else min(1.0, (update + 1) / 20)
    if way == HEALTHY:
        return base * warm * (0.5, 1.0)[seed % 2]
    if way == "corrupted batches":
        return base * warm
    start = 3.0 if way == "no warm-up" else 1.0
    growth = 1.0 + max(0, update - 60 - later) / 8  # from 60 on the rate climbs
    return base * warm * start * growth**2.5


def batch_of(way: str, update: int, draw: torch.Generator, later: int = 0) -> Tensor:
    start = torch.randint(1, WORDS, (8, 1), generator=draw)
    ids = (start + 3 * torch.arange(LENGTH)) % (WORDS - 1) + 1
    noise = torch.rand(ids.shape, generator=draw) < 0.3
    since = update - 70 - later
    if way == "corrupted batches" and since > 0:
        noise |= torch.rand(ids.shape, generator=draw) < min(1.0, since / 60)
    return torch.where(noise, torch.randint(1, WORDS, ids.shape, generator=draw), ids)


def compute(way: str, seed: int, later: int = 0) -> Run:
    """Train one small model with a doctor that reads as it does by default."""
    run, model = Run(way, seed, later), model_of(way, seed)
    draw = torch.Generator().manual_seed(7000 + seed)
    betas = (0.9, 0.5) if way == "Adam's β₂" else (0.9, 0.99)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=betas)
    model.train()

    def sink(update: int, values: Any) -> None:
        plain = {name.removeprefix("doctor/"): value for name, value in values.items()}
        run.readings.setdefault(update, {}).update(plain)

    doctor = dp.Doctor(model, every=10**6, budget=None, sink=sink, log=lambda line: None)
    for update in range(1, UPDATES + later + 1):
        for group in optimizer.param_groups:
            group["lr"] = rate_of(way, update, seed, later)
        ids = batch_of(way, update, draw, later)
        loss = F.cross_entropy(model(ids)[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        if way == HEALTHY:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        doctor.step(update)
        optimizer.zero_grad()
        run.losses.append(float(loss.detach()))
        if not math.isfinite(run.losses[-1]):
            break
    doctor.close()
    return run


def leaves_trend(losses: list[float]) -> int | None:
    """Find the update at which the loss leaves its trend; None if it never does."""
    past: deque[float] = deque(maxlen=50)
    out = 0
    for update, loss in enumerate(losses, start=1):
        if not math.isfinite(loss):
            return update - out
        if len(past) >= 20:
            middle = statistics.median(past)
            spread = 1.4826 * statistics.median(abs(each - middle) for each in past)
            if loss > middle + max(6 * spread, 0.25):
                out += 1
                if out == 5:
                    return update - 4
                continue
        out = 0
        past.append(loss)
    return None


def alarm_of(run: Run, watched: str, detector: Detector | None = None) -> dp.Alarm | None:
    """Find the first alarm of what is watched: all series, one norm, or the loss."""
    judge = detector or Detector()
    for update in sorted(run.readings):
        values = {k: v for k, v in run.readings[update].items() if k != "alarm"}
        if watched == "gradient norm alone":
            values = {"gradient": _total(values, "gradient of ")}
        elif watched == "update norm alone":
            values = {"update": _total(values, "update of ")}
        elif watched == "loss alone":
            values = {"loss": run.losses[update - 1]}
        found = judge.add(
            update, {k: v for k, v in values.items() if v > 0 or not math.isfinite(v)}
        )
        if found is not None:
            return found
    return None


def _total(values: dict[str, float], prefix: str) -> float:
    return math.sqrt(sum(v**2 for k, v in values.items() if k.startswith(prefix)))


def lead_table(runs: list[Run]) -> tuple[str, dict[str, dict[str, float]]]:
    """Score what is watched: share of failing runs warned of, median lead, false alarms."""
    failing = [(run, left) for run in runs if (left := leaves_trend(run.losses)) is not None]
    steady = [run for run in runs if run.way == HEALTHY]
    updates = sum(len(run.losses) for run in steady)
    head = (
        "| watched | failing runs | warned before the loss | by ≥ 20 updates | median lead | "
        "false alarms per 1,000 updates |"
    )
    lines, scores = [head, "|---" * 6 + "|"], {}
    for watched in WATCHED:
        leads = []
        for run, left in failing:
            found = alarm_of(run, watched)
            leads.append(left - found.update if found is not None else -UPDATES)
        early = [each for each in leads if each > 0]
        far = [each for each in leads if each >= 20]
        alarms = sum(alarm_of(run, watched) is not None for run in steady)
        row = {
            "failing": len(failing),
            "warned": len(early) / max(1, len(leads)),
            "far": len(far) / max(1, len(leads)),
            "lead": statistics.median(early) if early else 0.0,
            "false": 1000 * alarms / max(1, updates),
        }
        scores[watched] = row
        lines.append(
            f"| {watched} | {len(failing)} | {row['warned']:.0%} | {row['far']:.0%} | "
            f"{row['lead']:.0f} | {row['false']:.2f} |"
        )
    return "\n".join(lines), scores


def moved_first(runs: list[Run]) -> dict[str, int]:
    """Count which kind of series moved first in the runs that fail."""
    counts: dict[str, int] = {}
    for run in runs:
        found = alarm_of(run, "doctor") if leaves_trend(run.losses) is not None else None
        if found is not None:
            kind = found.series.split(" of ")[0]
            counts[kind] = counts.get(kind, 0) + 1
    return counts
