"""The exam: 52 faults on twelve families, beside healthy models; records, scores, tables.

Each case is one line of JSON in the records' folder, so that the exam goes on where it stopped.
"""

from __future__ import annotations

import copy
import json
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import depthpde as dp
from depthpde.doctor.checks.components import component_of
from depthpde.doctor.diagnosis import Diagnosis
from depthpde.doctor.loss import logits_of
from depthpde.layers.decoding import DecodeCache
from doctor import exam_models as models
from doctor.exam_models import FAMILIES, SEEN, Subject, case_of, learn
from doctor.exam_patient import DoesNotApply, Fault, Patient, patient
from doctor.faults import FAULTS
from doctor.zoo import HEALTHY, VALIDATION, Animal, cases

AGAINST = ("other code than the reference", "other weights than the reference")
TRAINED, MOVED, UPDATES = 40, 10, 50
DECODED = 3
"""Tokens that are decoded with a cache."""
SETTINGS = ("one batch", "against a reference", "fifty updates")


def strength_of(fault: Fault, family: str) -> Any:
    """Choose one strength for each family, so that all are in the exam."""
    k = zlib.crc32(f"{family}/{fault.component}/{fault.name}".encode())
    return fault.strengths[k % len(fault.strengths)]


def verdicts(diagnosis: Diagnosis, leave: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """Give what a diagnosis says, as plain values."""
    return [
        {
            "condition": str(each.condition),
            "component": each.component,
            "grade": each.grade.value,
            "severity": round(each.severity, 4),
            "value": _plain(each.value),
        }
        for each in diagnosis.verdicts
        if each.condition not in leave
    ]


def _plain(value: float) -> float | None:
    return value if abs(value) < float("inf") else None


def outputs(model: nn.Module, inputs: Any, *, seed: int | None = None) -> Tensor | None:
    """Run a model, in train mode if there is a seed."""
    torch.manual_seed(seed or 0)
    model.train(seed is not None)
    try:
        with torch.no_grad():
            return logits_of(model(**inputs) if isinstance(inputs, dict) else model(*inputs))
    except Exception:  # a fault may keep a model from being called
        return None
    finally:
        model.eval()


def change(healthy: nn.Module, model: nn.Module, inputs: Any) -> dict[str, float]:
    """Measure how far a fault moves the outputs, and how much more they vary in train mode."""
    a, b = outputs(healthy, inputs), outputs(model, inputs)
    if a is None or b is None or a.shape != b.shape:
        return {"eval": 1.0, "train": 1.0}
    gap = float((a - b).norm() / a.norm())
    levels = []
    for each in (healthy, model):
        runs = [outputs(each, inputs, seed=seed) for seed in range(4)]
        mean = sum(runs) / len(runs)  # type: ignore[arg-type,operator]
        levels.append(float(sum((run - mean).norm() for run in runs) / (4 * mean.norm())))  # type: ignore[operator]
    found = {"eval": gap, "train": abs(levels[1] - levels[0])}
    return {name: value if value == value else 1.0 for name, value in found.items()}


def decoded(model: nn.Module, inputs: dict[str, Tensor]) -> Tensor:
    """Give the logits of the last tokens, decoded one by one as the model's library does."""
    ((name, ids),) = inputs.items()
    own = isinstance(model, dp.LanguageModel)
    cache: Any = DecodeCache() if own else None
    made, begin = [], 0
    with torch.no_grad():
        for end in range(ids.shape[1] - DECODED, ids.shape[1] + 1):
            new = ids[:, begin:end]
            if own:
                out = model(new, cache=cache)
            elif name == "x":
                out, cache = model(ids[:, :end], cache=cache, return_intermediates=True)
            else:
                given = model(input_ids=new, past_key_values=cache, use_cache=True)
                out, cache = given.logits, given.past_key_values
            made.append(out[:, -1])
            begin = end
    return torch.stack(made[1:])


def cache_change(healthy: nn.Module, model: nn.Module, inputs: dict[str, Tensor]) -> float:
    """Measure how far a fault moves what is decoded with a cache."""
    a, b = decoded(healthy, inputs), decoded(model, inputs)
    return float((a - b).norm() / a.norm())


def changes_function(moved: dict[str, float]) -> bool:
    """Tell whether a fault changes what the model computes, beyond rounding."""
    return moved["eval"] > 1e-5 or moved["train"] > 0.02 or moved.get("cache", 0.0) > 1e-5


def fifty_updates(
    subject: Subject, model: nn.Module, decays: dict[str, float], seed: int
) -> list[Any]:
    """Train a model under a live doctor, and give every verdict of its looks."""
    from depthpde.doctor.model_map import model_map

    draw = torch.Generator().manual_seed(seed)
    body = model_map(model)
    groups: dict[float, list[Tensor]] = {}
    for name, weight in model.named_parameters():
        if weight.requires_grad:
            part = component_of(body, name.rpartition(".")[0])
            groups.setdefault(decays.get(part, 0.01), []).append(weight)
    optimizer = torch.optim.AdamW(
        [{"params": each, "weight_decay": decay} for decay, each in groups.items()], lr=1e-3
    )
    model.train()
    torch.manual_seed(seed)
    output: dict[str, dict[str, Any]] = {}
    with dp.Doctor(model, every=UPDATES // 2, budget=None, log=lambda line: None) as doctor:
        for _ in range(UPDATES):
            inputs, labels = subject.batch(draw)
            out = model(**inputs) if isinstance(inputs, dict) else model(*inputs)
            subject.loss(out, labels).backward()
            optimizer.step()
            looks = len(doctor.history)
            doctor.step()
            if len(doctor.history) > looks and doctor.diagnosis is not None:
                for each in verdicts(doctor.diagnosis):
                    before = output.get(each["condition"])
                    if before is None or before["severity"] < each["severity"]:
                        output[each["condition"]] = each
            optimizer.zero_grad()
    model.eval()
    return list(output.values())


def sit(
    subject: Subject,
    model: nn.Module,
    seed: int,
    *,
    decays: dict[str, float] | None = None,
    train: bool = True,
    reference: nn.Module | None = None,
) -> dict[str, Any]:
    """Let a model sit the exam in all three settings."""
    inputs, labels = subject.batch(torch.Generator().manual_seed(seed))
    began = time.perf_counter()
    record: dict[str, Any] = {}
    try:
        output = dp.diagnose(
            model, inputs, labels=labels, loss=subject.loss, baseline=False, reference=reference
        )
        record["one batch"] = verdicts(output, AGAINST)
        if reference is not None:
            record["against a reference"] = verdicts(output)
    except Exception as error:
        record["error"] = f"{type(error).__name__}: {str(error)[:200]}"
        record["one batch"] = record["against a reference"] = [FAILED]
    record["seconds"] = round(time.perf_counter() - began, 3)
    if train:
        try:
            record["fifty updates"] = fifty_updates(subject, model, decays or {}, seed)
        except Exception as error:
            record["training error"] = f"{type(error).__name__}: {str(error)[:200]}"
            record["fifty updates"] = [FAILED]
    return record


FAILED = {
    "condition": "cannot be called",
    "component": "output",
    "grade": "ill",
    "severity": 3.0,
    "value": None,
}
"""A model that cannot be called or trained as its like can is found without a doctor."""


def faulty(family: str, k: int = 0) -> Iterator[dict[str, Any]]:
    """Give every fault of one family, one after the other; those it cannot have are left out."""
    case = case_of(family, k)
    subject = learn(FAMILIES[family](case), TRAINED, seed=case.seed)
    inputs, _ = subject.batch(torch.Generator().manual_seed(case.seed + 1))
    later = Subject(copy.deepcopy(subject.model), subject.batch, subject.loss)
    learn(later, MOVED, seed=case.seed + 2, rate=1e-4)
    turn = list(FAMILIES).index(family)
    for number, fault in enumerate(FAULTS):
        # half of the patients have learned on since the reference was kept
        healthy = later.model if number % 2 else subject.model
        model = copy.deepcopy(healthy)
        chosen = strength_of(fault, family)
        ill: Patient = patient(model, case.seed, case.length)
        try:
            with torch.no_grad():
                fault.apply(ill, chosen)
        except (DoesNotApply, AttributeError) as error:
            yield {
                "family": family,
                "fault": fault.name,
                "component": fault.component,
                "applies": str(error) or type(error).__name__,
            }
            continue
        moved = change(healthy, model, inputs)
        if fault.component == "KV cache":
            moved["cache"] = cache_change(healthy, model, inputs)
        if ill.updates or fault.name == "frozen or unregistered":
            moved["training"] = 1.0
        train = (number // 2 + turn // 2) % 4 == 0  # every fault in a quarter of the families
        record = sit(
            subject, model, case.seed + 3,
            decays=ill.updates, reference=subject.model, train=train,
        )  # fmt: skip
        yield {
            "family": family,
            "seen": family in SEEN,
            "fault": fault.name,
            "component": fault.component,
            "strength": str(chosen),
            "change": moved,
        } | record


def healthy_of(family: str, k: int, *, train: bool) -> dict[str, Any]:
    """Let one healthy model sit the exam: at its start or trained, after healthy updates or not."""
    case = case_of(family, 100 + k)
    subject = FAMILIES[family](case)
    subject.model.eval()
    if k % 2:
        learn(subject, TRAINED, seed=case.seed)
    model = copy.deepcopy(subject.model)
    if k % 3:
        learn(Subject(model, subject.batch, subject.loss), MOVED, seed=case.seed + 2, rate=1e-4)
    record = sit(subject, model, case.seed + 3, reference=subject.model, train=train)
    return {"family": family, "seen": family in SEEN, "fault": None, "case": k} | record


def alone(name: str, model: nn.Module, inputs: Any) -> dict[str, Any]:
    """Let a healthy model sit the first setting."""
    began = time.perf_counter()
    record: dict[str, Any] = {"family": name, "seen": False, "fault": None}
    try:
        record["one batch"] = verdicts(dp.diagnose(model, inputs, baseline=False))
    except Exception as error:
        record["error"] = f"{type(error).__name__}: {str(error)[:200]}"
    record["seconds"] = round(time.perf_counter() - began, 3)
    record["parameters"] = sum(each.numel() for each in model.parameters())
    return record


class Records:
    """Lines of JSON by file; a file that is whole is marked so and not computed again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def file(self, name: str) -> Path:
        return self.folder / f"{name.replace(' ', '-').replace('/', '-')}.json"

    def has(self, name: str) -> bool:
        return self.file(name).is_file()

    def write(self, name: str, lines: list[dict[str, Any]]) -> None:
        part = self.file(name).with_suffix(".part")
        part.write_text(json.dumps(lines), encoding="utf-8")
        part.replace(self.file(name))

    def all(self) -> list[dict[str, Any]]:
        return [
            line
            for path in sorted(self.folder.glob("*.json"))
            for line in json.loads(path.read_text(encoding="utf-8"))
        ]


HEALTHY_CASES, TRAINED_CASES = 12, 2
"""Healthy models of each family, and how many of them are trained for fifty updates."""


SLICE_FAMILIES = ("OPT", "GPT-2")
"""Two decoders, one that calibration used and one that it did not: a part that takes minutes."""


def jobs(wheels: Path | None, *, whole: bool = True) -> Iterator[tuple[str, Any]]:
    """Name every part of the exam, the most telling first; of a slice two families alone."""
    families = list(FAMILIES)
    if not whole:
        for family in SLICE_FAMILIES:
            yield f"faults {family}", lambda family=family: list(faulty(family))
            yield f"healthy {family}", lambda family=family: list(healthy_cases(family))
        return
    for family in families[:4]:
        yield f"faults {family}", lambda family=family: list(faulty(family))
    for k in range(0, 300, 12):
        yield f"healthy architectures {k}", lambda k=k: list(architectures(k, k + 12))
    for family in families:
        yield f"healthy {family}", lambda family=family: list(healthy_cases(family))
    for name, load in models.pretrained(wheels).items():
        yield f"pretrained {name}", lambda name=name, load=load: list(loaded(name, load))
    for k in range(0, len(HEALTHY), 3):
        yield f"healthy zoo {k // 3}", lambda k=k: list(zoo(HEALTHY[k : k + 3]))
    for family in families[4:]:
        yield f"faults {family}", lambda family=family: list(faulty(family))


def loaded(name: str, load: Callable[[], tuple[nn.Module, Any]]) -> Iterator[dict[str, Any]]:
    """Give a pretrained model, where its packages let it be loaded."""
    try:
        model, inputs = load()
    except (ImportError, OSError, ValueError) as error:
        print(f"{name} cannot be loaded: {error}")
        return
    yield alone(name, model, inputs)


def healthy_cases(family: str) -> Iterator[dict[str, Any]]:
    """Give the healthy models of one family."""
    for k in range(HEALTHY_CASES):
        yield healthy_of(family, k, train=k < TRAINED_CASES)


def zoo(kinds: list[Animal]) -> Iterator[dict[str, Any]]:
    """Give healthy kinds of the validation zoo, whose seeds and sizes calibration never saw."""
    for animal, case in cases(kinds, VALIDATION):
        each = animal.build(case)
        yield alone(animal.name, each.model, each.batch)


def of_the_exam(architecture: str) -> bool:
    """Divide the architectures of transformers: half for the exam, half for calibration."""
    return zlib.crc32(architecture.encode()) % 2 == 1


def architectures(start: int, stop: int) -> Iterator[dict[str, Any]]:
    """Give architectures of transformers that the doctor knows, as they start."""
    sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
    import tiny_models

    known = [
        each
        for each in tiny_models.model_types()
        if each[0] in ("causal", "masked", "vision") and of_the_exam(each[1])
    ]
    for kind, name, class_name in known[start:stop]:
        try:
            model, batch = tiny_models.build(kind, name, class_name)
        except Exception:
            continue  # a type that has no tiny config
        record = alone(f"{name} ({kind})", model.eval(), batch)
        if "error" not in record:
            yield record


def run(
    folder: Path, wheels: Path | None, minutes: float, share: tuple[int, int], *, whole: bool = True
) -> None:
    """Compute what is missing of the k-th of n equal shares of the jobs, until the time is up."""
    records, began = Records(folder), time.monotonic()
    torch.set_num_threads(1)
    k, count = share
    for name, job in list(jobs(wheels, whole=whole))[k::count]:
        if records.has(name):
            continue
        if time.monotonic() - began > 60 * minutes:
            print(f"stopped after {minutes:g} minutes; the same command goes on")
            return
        start = time.monotonic()
        lines = job()
        records.write(name, lines)
        print(f"{name}: {len(lines)} cases in {time.monotonic() - start:.0f} s", flush=True)
