"""Calibrate the doctor, show its confusion table, and measure what watching a training costs.

    python benchmarks/doctor.py calibrate    numbers of the calibration zoo → thresholds.json
    python benchmarks/doctor.py confusion    what it says of the validation zoo
    python benchmarks/doctor.py overhead     training with and without it, interleaved

Calibration and validation share neither a seed nor a size.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import depthpde as dp

if TYPE_CHECKING:
    from doctor.patients import Case

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))
THRESHOLDS = ROOT / "src" / "depthpde" / "doctor" / "thresholds.json"

BY_RATIO = ("rank collapse", "over-smoothing", "exploding gradients", "vanishing gradients")
BY_DIFFERENCE = ("representational drift", "entropy collapse")
ANY_HEAD = 1e-9
"""From this share of heads on one is named: any at all."""


def calibrate() -> None:
    """Measure the calibration zoo and write where a condition begins."""
    from doctor.patients import pretrained
    from doctor.zoo import BROKEN, CALIBRATION, HEALTHY, cases, sign_values

    healthy: dict[dp.Condition, list[float]] = {condition: [] for condition in dp.Condition}
    broken: dict[dp.Condition, list[float]] = {condition: [] for condition in dp.Condition}
    builders = [partial(animal.build, case) for animal, case in cases(HEALTHY, CALIBRATION)]
    for build in (*builders, pretrained):
        patient = build()
        for condition, value in sign_values(patient).items() if patient else ():
            healthy[condition].append(value)
    for animal, case in cases(BROKEN, CALIBRATION):
        value = sign_values(animal.build(case)).get(animal.condition)
        broken[animal.condition].append(math.nan if value is None else value)
    said = json.loads(THRESHOLDS.read_text(encoding="utf-8"))
    for condition, row in said["thresholds"].items():
        well, bad = healthy[dp.Condition(condition)], broken[dp.Condition(condition)]
        row |= limits(condition, row["worse"], well, bad)
        print(f"{condition:24} healthy {min(well):.3g} … {max(well):.3g} ({len(well)})", end="   ")
        print(f"broken {min(bad):.3g} … {max(bad):.3g} ({len(bad)})", end="   ")
        print(f"watch {row['callback']:.3g}  ill {row['ill']:.3g}")
    THRESHOLDS.write_text(json.dumps(said, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def limits(condition: str, worse: str, well: list[float], bad: list[float]) -> dict[str, object]:
    """Put the thresholds between the nearest healthy model and the nearest broken one."""
    near_well, near_bad = (min(well), max(bad)) if worse == "low" else (max(well), min(bad))
    found: dict[str, object] = {"healthy": ends(well), "broken": ends(bad)}
    if condition == "dead layers":
        return found | {"ill": two_digits(near_well / 100), "watch": two_digits(near_well / 10)}
    if condition in BY_RATIO:
        ill = math.sqrt(near_well * near_bad)
        return found | {"ill": two_digits(ill), "watch": two_digits(math.sqrt(ill * near_well))}
    if condition in BY_DIFFERENCE:
        ill = (near_well + near_bad) / 2
        callback = (
            ANY_HEAD if condition == "entropy collapse" else two_digits((ill + near_well) / 2)
        )
        return found | {"ill": two_digits(ill), "watch": callback}
    return found


def ends(values: list[float]) -> list[float | None]:
    """Give the least and the greatest number, to three digits; JSON knows no infinity."""
    return [
        float(f"{each:.3g}") if math.isfinite(each) else None for each in (min(values), max(values))
    ]


def two_digits(value: float) -> float:
    """Round to two digits: a threshold is not known better."""
    return float(f"{value:.2g}")


def confusion() -> None:
    """Print what the doctor says of the validation zoo."""
    from doctor.zoo import confusion_table, examine

    print(confusion_table(examine()))


def overhead() -> None:
    """Print what looking adds to a training at the default interval.

    Processor seconds on one thread, so that other work on the machine does not count.
    """
    import torch

    from depthpde.doctor.live import EVERY
    from doctor.patients import Case

    torch.set_num_threads(1)
    for case in (
        Case(seed=0, dim=64, blocks=2, length=128, batch=32),
        Case(seed=0, dim=128, blocks=4, length=256, batch=16),
    ):
        usual, looked_at = step_seconds(case)
        look = looked_at - usual
        print(
            f"{case.blocks} blocks, dim {case.dim}, length {case.length}, batch {case.batch}: "
            f"a step {1e3 * usual:.0f} ms, a look {1e3 * look:.0f} ms, "
            f"every {EVERY}: {look / (EVERY * usual):.2%} of the training time"
        )


def step_seconds(case: Case) -> tuple[float, float]:
    """Give the median time of a training step, and of one that is looked at, in turns."""
    import torch

    from doctor.patients import CLASSES, classifier

    model = classifier(case).model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    draw = torch.Generator().manual_seed(0)

    def step(doctor: dp.Doctor | None = None) -> float:
        ids = torch.randint(1, case.words, (case.batch, case.length), generator=draw)
        labels = torch.randint(0, CLASSES, (case.batch,), generator=draw)
        began = time.process_time()
        loss = torch.nn.functional.cross_entropy(model(ids), labels)
        optimizer.zero_grad()
        loss.backward()
        if doctor is not None:
            doctor.step()
        optimizer.step()
        return time.process_time() - began

    for _ in range(3):  # warm up
        step()
    plain, looking = [], []
    for _ in range(8):
        plain += [step(), step()]
        with dp.Doctor(model, budget=None, log=lambda line: None) as doctor:
            looking.append(step(doctor))
    return statistics.median(plain), statistics.median(looking)


def main() -> None:
    """Run one of the three."""
    parser = argparse.ArgumentParser(description=__doc__)
    jobs = {"calibrate": calibrate, "confusion": confusion, "overhead": overhead}
    parser.add_argument("job", choices=jobs)
    jobs[parser.parse_args().job]()


if __name__ == "__main__":
    main()
