"""Calibrate the doctor, examine it, and measure what watching a training costs.

    python benchmarks/doctor.py calibrate    numbers of the calibration zoo → thresholds.json
    python benchmarks/doctor.py confusion    what it says of the validation zoo
    python benchmarks/doctor.py cost         a diagnosis of 100 M parameters; watching a training
    python benchmarks/doctor.py exam         52 faults on twelve families, beside healthy models
    python benchmarks/doctor.py early        runs driven to instability: who warns, and how early

Calibration and validation share neither a seed nor a size. `exam` and `early` keep a record of
every case in --records and go on where they stopped; --fill writes their tables into the page and
--check compares them with the bars.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

# before torch: oneDNN's bfloat16 attention ends the process (illegal instruction) on virtual
# machines that name AMX and do not let it be used
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE")

import depthpde as dp

if TYPE_CHECKING:
    from doctor.early import Run
    from doctor.patients import Case

ROOT = Path(__file__).parents[1]
# `doctor` is the folder of the tests here, not this script
sys.path[:] = [
    str(ROOT / "tests"),
    *(p for p in sys.path if Path(p).resolve() != Path(__file__).parent),
]
PAGE = ROOT / "docs" / "doctor.md"
THRESHOLDS = ROOT / "src" / "depthpde" / "doctor" / "thresholds.json"

SIZES = (
    {"seed": 0, "dim": 64, "blocks": 2, "length": 128, "batch": 32},
    {"seed": 0, "dim": 128, "blocks": 4, "length": 256, "batch": 16},
)
"""Trainings that are watched."""
READINGS, LOOKS = 60, 16
"""Of each training, for the median."""
RUNS = 13
"""Runs that are driven to instability in each way; as many healthy ones."""
BY_RATIO = ("rank collapse", "over-smoothing", "exploding gradients", "vanishing gradients")
BY_DIFFERENCE = ("representational drift", "entropy collapse")
ANY_HEAD = 1e-9
"""From this share of heads on one is named: any at all."""


def calibrate() -> None:
    """Measure the calibration zoo and write where a condition begins."""
    from doctor.patients import pretrained
    from doctor.zoo import BROKEN, CALIBRATION, CORE, HEALTHY, cases, sign_values

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
        if condition in CORE:
            row |= limits(condition, row["worse"], well, bad)
        elif well:  # bounds that hold by construction; what healthy models show is noted
            row["healthy"] = ends(well)
            continue
        print(f"{condition:24} healthy {min(well):.3g} … {max(well):.3g} ({len(well)})", end="   ")
        print(f"broken {min(bad):.3g} … {max(bad):.3g} ({len(bad)})", end="   ")
        print(f"watch {row['watch']:.3g}  ill {row['ill']:.3g}")
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


def cost(options: argparse.Namespace) -> int:
    """Measure what a diagnosis and what watching cost, and compare that with the bars.

    A GPT-2 of 100 M parameters on two threads, in a process of its own: what the process holds at
    most while it diagnoses, less what it held before, against the weights. Watching on one thread,
    in processor seconds.
    """
    import torch

    from depthpde.doctor.alarms.live import EVERY, PULSE
    from doctor.patients import Case

    spent = [json.loads(_alone("--large")) for _ in range(3)]
    spent.sort(key=lambda each: each["seconds"])
    middle = spent[1]
    more = (middle["peak"] - middle["before"]) / middle["model"]
    lines = [
        f"{middle['parameters'] / 1e6:.0f} M parameters, {middle['blocks']} blocks, 2 threads: "
        f"{middle['seconds']:.1f} s a diagnosis (of three: {spent[0]['seconds']:.1f} to "
        f"{spent[2]['seconds']:.1f}; {middle['processor']:.1f} processor seconds, load "
        f"{os.getloadavg()[0]:.0f})",
        f"memory: the model and {more:.2f} × as much again (resident, at most, less what the "
        "process held before)",
    ]
    torch.set_num_threads(1)
    shares = []
    for case in (Case(**each) for each in SIZES):
        usual, read, looked_at = step_seconds(case)
        readings = EVERY // PULSE - 1  # one of them falls on a look
        share = (looked_at - usual + readings * (read - usual)) / (EVERY * usual)
        shares.append(share)
        lines.append(
            f"{case.blocks} blocks, dim {case.dim}, length {case.length}, batch {case.batch}: "
            f"a step {1e3 * usual:.1f} ms, "
            f"a look {1e3 * (looked_at - usual):.0f} ms every {EVERY}, "
            f"a reading {1e3 * (read - usual):.1f} ms every {PULSE}: {share:.2%} of the time"
        )
    print("\n".join(lines))
    if options.fill:
        fill("cost", "\n".join(f"- {each}" for each in lines))
    bars = {
        "≤ 5 s a diagnosis": middle["seconds"] <= 5.0,
        "memory ≤ 2 × the model: itself and as much again": more <= 1.0,
        "live overhead ≤ 0.5 %": max(shares) <= 0.005,
    }
    return report(bars) if options.check else 0


def _alone(option: str) -> str:
    """Run this script in a process of its own and give the last line that it prints."""
    command = [sys.executable, "-W", "ignore", str(Path(__file__)), "cost", option]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
    return done.stdout.strip().splitlines()[-1]


def large() -> None:
    """Diagnose a GPT-2 of 100 M parameters once, and print time and memory as JSON."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    def resident(line: str) -> int:
        status = Path("/proc/self/status").read_text(encoding="utf-8")
        return 1024 * int(status.partition(f"{line}:")[2].split()[0])

    torch.set_num_threads(2)
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=20_000, n_positions=512)).eval()
    size = sum(each.numel() * each.element_size() for each in model.parameters())
    few = GPT2LMHeadModel(GPT2Config(vocab_size=99, n_embd=16, n_head=2, n_layer=2)).eval()
    dp.diagnose(few, torch.randint(0, 99, (2, 16)))  # what is loaded once
    ids = torch.randint(0, 20_000, (8, 64))
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")  # the peak begins anew
    before = resident("VmRSS")
    began, spent = time.perf_counter(), time.process_time()
    said = dp.diagnose(model, ids, labels=ids)
    print(json.dumps({
        "seconds": time.perf_counter() - began, "processor": time.process_time() - spent,
        "before": before, "peak": resident("VmHWM"), "model": size,
        "parameters": said.trajectory.parameters, "blocks": said.trajectory.blocks,
    }))  # fmt: skip


def step_seconds(case: Case) -> tuple[float, float, float]:
    """Give the time of a step, of one that is read and of one that is looked at.

    Processor seconds; every step that is read or looked at stands beside a plain one, and the
    median of the differences counts: single steps vary by more than a reading takes.
    """
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
    plain, reading, looking = [], [], []
    with dp.Doctor(model, every=10**6, pulse=2, budget=None, log=lambda line: None) as reader:
        step(reader), step(reader)  # the first of a doctor is a look
        for _ in range(READINGS):
            plain += [step(), step()]
            # the step before the one that is read attaches the hooks
            reading.append(step(reader) + step(reader) - plain[-1] - plain[-2])
    for _ in range(LOOKS):
        plain.append(step())
        with dp.Doctor(model, budget=None, log=lambda line: None) as doctor:
            looking.append(step(doctor) - plain[-1])
    usual = statistics.median(plain)
    return usual, usual + statistics.median(reading), usual + statistics.median(looking)


def exam(options: argparse.Namespace) -> int:
    """Compute what is missing of the exam, print its table, compare it with the bars."""
    from doctor.exam import SLICE_FAMILIES, Records, run
    from doctor.exam_scores import (
        alarms_by_kind,
        defects,
        false_alarms,
        hidden_alone,
        invisible,
        seen_alone,
        summary,
        table,
    )

    whole = not options.slice
    run(options.records, options.wheels, options.minutes, options.share, whole=whole)
    records = [
        each for each in Records(options.records).all() if whole or each["family"] in SLICE_FAMILIES
    ]
    lists = {
        "Not seen in most cases, in any setting": invisible(records),
        "Not seen in most cases by one batch alone": hidden_alone(records),
        "Healthy models that one batch called ill, by kind": alarms_by_kind(records),
        "Healthy models that were called ill": false_alarms(records),
        "Left out, as two calls that must agree do not": defects(records),
    }
    text = f"{table(records)}\n\n{seen_alone(records)}"
    for title, found in lists.items():
        text += f"\n\n{title}:\n\n" + "\n".join(f"- {each}" for each in found or ["none"])
    print(text)
    if options.fill and whole:
        fill("exam", text)
    scores = summary(records)
    bars = {
        f"{setting}: {words}": reached
        for setting in ("one batch", "against a reference", "fifty updates")
        for row in (scores[f"{setting}, all"],)
        for words, reached in (
            (f"AUROC {row['auroc']:.3f} ≥ 0.95", row["auroc"] >= 0.95),
            (f"AUROC of what can be seen {row['visible']:.3f} ≥ 0.95", row["visible"] >= 0.95),
            (f"macro-F1 {row['macro-F1']:.2f} ≥ 0.80", row["macro-F1"] >= 0.80),
            (f"false alarms {row['false alarms']:.1%} ≤ 1 %", row["false alarms"] <= 0.01),
        )
    }
    if not whole:
        return report(bars) if options.check else 0
    bars["≥ 8 families"] = len({each["family"] for each in records if each["fault"]}) >= 8
    bars["≥ 300 healthy models"] = scores["one batch, all"]["healthy"] >= 300
    return report(bars) if options.check else 0


def early(options: argparse.Namespace) -> int:
    """Compute what is missing of the runs, print who warned how early, compare with the bars."""
    from doctor.early import LATER, lead_table, moved_first

    options.records.mkdir(parents=True, exist_ok=True)
    runs, planned = early_runs(options)
    parts, bars = [], {"all runs computed": len(runs) == planned}
    for later, when in ((0, "update 60 on, readings every 3"), (LATER, "360 on, every 20")):
        mine = [run for run in runs if run.later == later]
        text, scores = lead_table(mine)
        moved = ", ".join(f"{kind} ({count})" for kind, count in moved_first(mine).items())
        parts.append(f"Driven from {when}: {len(mine)} runs.\n\n{text}\n\nMoved first: {moved}.")
        ours = scores["doctor"]
        if not later:
            bars |= {"≥ 60 runs that fail": ours["failing"] >= 60}
        bars |= {
            f"driven from {60 + later}: median lead ≥ 20 updates": ours["lead"] >= 20,
            f"driven from {60 + later}: in ≥ 70 % of the runs that fail": ours["far"] >= 0.7,
        }
    print("\n\n".join(parts))
    if options.fill:
        fill("early", "\n\n".join(parts))
    return report(bars) if options.check else 0


def early_runs(options: argparse.Namespace) -> tuple[list[Run], int]:
    """Compute what is missing of this share of the runs; return those there are, and how many."""
    from dataclasses import asdict

    from doctor.early import HEALTHY, LATER, WAYS, Run, compute

    jobs = [(way, 1000 + 60 * n + k) for k in range(RUNS) for n, way in enumerate(WAYS)]
    jobs += [(HEALTHY, 2000 + RUNS * j + k) for k in range(RUNS) for j in range(len(WAYS))]
    every = [(*job, 0) for job in jobs] + [(*job, LATER) for job in jobs[::2]]
    began, runs = time.monotonic(), []
    for index, (way, seed, later) in enumerate(every):
        name = f"{way}-{seed}-{later}.json".replace(" ", "-").replace("'", "")
        file, mine = options.records / name, index % options.share[1] == options.share[0]
        if mine and not file.is_file() and time.monotonic() - began < 60 * options.minutes:
            file.write_text(json.dumps(asdict(compute(way, seed, later))), encoding="utf-8")
        if file.is_file():
            plain = json.loads(file.read_text(encoding="utf-8"))
            plain["readings"] = {int(k): v for k, v in plain["readings"].items()}
            runs.append(Run(**plain))
    return sorted(runs, key=lambda run: (run.way, run.seed)), len(every)


def share(text: str) -> tuple[int, int]:
    """Read which of several equal shares of the work is to be done."""
    k, _, count = text.partition("/")
    return int(k), int(count)


def report(bars: dict[str, bool]) -> int:
    """Print each bar; 1 if one is not reached."""
    for name, reached in bars.items():
        print(f"{'reached' if reached else 'MISSED'}  {name}")
    return 0 if all(bars.values()) else 1


def fill(name: str, text: str) -> None:
    """Write a table between its marks in the page."""
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(f"<!-- {name} -->")
    _, _, after = rest.partition("<!-- end -->")
    PAGE.write_text(f"{before}<!-- {name} -->\n{text}\n<!-- end -->{after}", encoding="utf-8")


def main() -> int:
    """Run one of the jobs."""
    parser = argparse.ArgumentParser(description=__doc__)
    jobs = {"calibrate": calibrate, "confusion": confusion}
    measured = {"exam": exam, "early": early, "cost": cost}
    parser.add_argument("job", choices=[*jobs, *measured])
    parser.add_argument("--records", type=Path, help="folder of the records (default: out/JOB)")
    parser.add_argument(
        "--wheels", type=Path, help="folder of unpacked wheels with pretrained models"
    )
    parser.add_argument("--minutes", type=float, default=600.0, help="stop after these")
    parser.add_argument(
        "--share", type=share, default=(0, 1), help="K/N: compute every N-th job, from the K-th on"
    )
    parser.add_argument(
        "--slice", action="store_true", help="of the exam two families alone, in some minutes"
    )
    parser.add_argument("--large", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--fill", action="store_true", help="write the table into docs/doctor.md")
    parser.add_argument("--check", action="store_true", help="exit 1 where a bar is missed")
    options = parser.parse_args()
    options.records = options.records or ROOT / "out" / f"doctor-{options.job}"
    if options.large:
        large()
        return 0
    if options.job in measured:
        return measured[options.job](options)
    jobs[options.job]()
    return 0


if __name__ == "__main__":
    sys.exit(main())
