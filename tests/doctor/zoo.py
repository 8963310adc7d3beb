"""Healthy models and models broken on purpose, each of many seeds and sizes.

An animal is a function of a case that gives a patient. Its condition is what was done to it; None
if nothing was. Calibration and validation use different seeds *and* different sizes, so that no
threshold is tuned on what it is judged by.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from depthpde.doctor.conditions.condition import Condition, Symptom
from depthpde.doctor.conditions.table import symptoms
from depthpde.doctor.depth_profile import DepthProfile
from depthpde.doctor.diagnosis import CORE, judge
from depthpde.doctor.probe import probe
from depthpde.doctor.thresholds import Grade, Thresholds
from depthpde.layers.stabilizer import Stabilizer
from doctor.breaking import (
    beyond_bound,
    copied_tokens,
    dead,
    gain_on_stream,
    never_active,
    one_token,
    scaled,
    smoothed,
    two_sided,
    two_sided_by_hook,
)
from doctor.patients import (
    Case,
    Patient,
    bert,
    classifier,
    gpt2,
    language,
    llama,
    pretrained,
    torch_encoder,
    trained,
    vision,
    with_inserted,
)

CALIBRATION = [
    Case(seed, dim, blocks, length)
    for seed, (dim, blocks, length) in enumerate(
        [(32, 4, 24), (32, 8, 16), (64, 6, 32), (16, 3, 20), (32, 12, 12), (48, 5, 40), (64, 2, 24)]
    )
]
VALIDATION = [
    Case(seed, dim, blocks, length, words=47)
    for seed, (dim, blocks, length) in enumerate(
        [(24, 6, 28), (40, 4, 18), (56, 9, 22), (48, 2, 30)], start=100
    )
]


@dataclass(frozen=True)
class Animal:
    name: str
    condition: Condition | None
    build: Callable[[Case], Patient]


NO_RESIDUAL = Stabilizer(residual=False)
NO_NORM = Stabilizer(norm="none")
NEITHER = Stabilizer(norm="none", residual=False)
POST = Stabilizer(norm="post")

HEALTHY = [
    Animal("classifier, pre-norm", None, classifier),
    Animal("classifier, post-norm", None, lambda c: classifier(c, stabilizer=POST)),
    Animal(
        "classifier, DeepNorm", None,
        lambda c: classifier(c, stabilizer=Stabilizer(norm="post", deepnorm=True)),
    ),
    Animal("classifier, ReLU", None, lambda c: classifier(c, activation="relu")),
    Animal("classifier, rotary", None, lambda c: classifier(c, encoding="rotary")),
    Animal(
        "diffusion after embedding", None,
        lambda c: classifier(c, positions=("after_embedding",)),
    ),
    Animal(
        "multiscale diffusion", None,
        lambda c: classifier(c, positions=("after_embedding",), layer="multiscale"),
    ),
    Animal(
        "diffusion in attention", None,
        lambda c: classifier(c, positions=("in_attention", "after_ffn")),
    ),
    Animal("classifier, trained", None, lambda c: trained(classifier(c), c)),
    Animal(
        "classifier with diffusion, trained", None,
        lambda c: trained(classifier(c, positions=("after_embedding",)), c),
    ),
    Animal("language model", None, language),
    Animal(
        "language model with diffusion", None,
        lambda c: language(c, positions=("after_embedding",)),
    ),
    Animal("language model, trained", None, lambda c: trained(language(c), c)),
    Animal("vision", None, lambda c: vision(c, positions=("after_embedding",))),
    Animal("BERT", None, bert),
    Animal(
        "BERT with diffusion", None,
        lambda c: with_inserted(bert(c), "after_embedding", initial_ratio=0.1),
    ),
    Animal("GPT-2", None, gpt2),
    Animal(
        "GPT-2 with diffusion", None,
        lambda c: with_inserted(gpt2(c), "after_ffn", initial_ratio=0.1),
    ),
    Animal("Llama", None, llama),
    Animal("torch.nn, pre-norm", None, lambda c: torch_encoder(c, norm_first=True)),
    Animal("torch.nn, post-norm", None, lambda c: torch_encoder(c, norm_first=False)),
]  # fmt: skip

BROKEN = [
    Animal("no residual", Condition.DRIFT, lambda c: classifier(c, stabilizer=NO_RESIDUAL)),
    Animal(
        "no residual, decoder", Condition.DRIFT, lambda c: language(c, stabilizer=NO_RESIDUAL)
    ),
    Animal(
        "no residual, post-norm", Condition.DRIFT,
        lambda c: classifier(c, stabilizer=Stabilizer(norm="post", residual=False)),
    ),
    Animal("one vector for all tokens", Condition.RANK,
           lambda c: one_token(classifier(c, encoding="rotary"))),
    Animal("tokens copied", Condition.RANK, lambda c: copied_tokens(classifier(c), c)),
    Animal("tokens copied, BERT", Condition.RANK, lambda c: copied_tokens(bert(c), c)),
    Animal("64 steps between blocks", Condition.SMOOTHING, lambda c: smoothed(classifier(c), c)),
    Animal("64 steps between blocks, BERT", Condition.SMOOTHING, lambda c: smoothed(bert(c), c)),
    Animal("64 steps between blocks, torch.nn", Condition.SMOOTHING,
           lambda c: smoothed(torch_encoder(c, norm_first=True), c)),
    Animal("huge init", Condition.ENTROPY, lambda c: scaled(classifier(c), 10.0)),
    Animal("huge init, BERT", Condition.DRIFT, lambda c: bert(c, initializer_range=2.0)),
    Animal("huge queries", Condition.ENTROPY,
           lambda c: scaled(classifier(c), 100.0, "attention.query")),
    Animal("no norm, large init", Condition.EXPLODING,
           lambda c: scaled(classifier(c, stabilizer=NO_NORM), 4.0)),
    Animal("stream grows a million-fold", Condition.EXPLODING,
           lambda c: gain_on_stream(classifier(c, stabilizer=NO_NORM), 1e6 ** (1 / c.blocks))),
    Animal("neither, small init", Condition.VANISHING,
           lambda c: scaled(classifier(c, stabilizer=NEITHER), 0.3)),
    Animal("stream shrinks a million-fold", Condition.VANISHING,
           lambda c: gain_on_stream(classifier(c, stabilizer=NO_NORM), 1e-6 ** (1 / c.blocks))),
    Animal("ratio beyond its bound", Condition.DIFFUSION,
           lambda c: beyond_bound(classifier(c, positions=("after_embedding",)), 0.6)),
    Animal("ratio beyond its bound, BERT", Condition.DIFFUSION,
           lambda c: beyond_bound(
               with_inserted(bert(c), "after_ffn", initial_ratio=0.1), 0.8)),
    Animal("negative ratio", Condition.DIFFUSION,
           lambda c: beyond_bound(classifier(c, positions=("between_blocks",)), -0.2)),
    Animal("two-sided stencil in a decoder", Condition.LEAK,
           lambda c: two_sided(language(c, positions=("after_embedding",)), c)),
    Animal("two-sided stencil in GPT-2", Condition.LEAK, lambda c: two_sided_by_hook(gpt2(c), c)),
    Animal("dead attention", Condition.DEAD,
           lambda c: dead(classifier(c), c, "attention.out")),
    Animal("dead feed-forward, BERT", Condition.DEAD,
           lambda c: dead(bert(c), c, "output.dense.weight", "output.dense.bias")),
    Animal("units never active", Condition.DEAD,
           lambda c: never_active(classifier(c, activation="relu"))),
]  # fmt: skip


def cases(animals: list[Animal], among: list[Case]) -> Iterator[tuple[Animal, Case]]:
    for animal in animals:
        for case in among:
            yield animal, case


def trajectory_of(patient: Patient) -> DepthProfile:
    return probe(
        patient.model, patient.batch, labels=patient.labels, baseline=False, check=False,
        groups=("drift", "rank", "energy", "attention"),
    )  # fmt: skip


def sign_values(patient: Patient) -> dict[str, float]:
    """The number of every condition that could be measured."""
    found = symptoms(trajectory_of(patient))
    return {each: sign.value for each, sign in found.items() if isinstance(sign, Symptom)}


@dataclass(frozen=True)
class Finding:
    """What the doctor said of one case."""

    animal: str
    truth: Condition | None
    ill: tuple[str, ...]
    watch: tuple[str, ...]

    @property
    def right(self) -> bool:
        """The condition is named; of the healthy, none is."""
        return not self.ill if self.truth is None else self.truth in self.ill


def examine(every: int = 1) -> list[Finding]:
    """Let the doctor see the validation zoo: every N-th case of it, and the pretrained model."""
    thresholds = Thresholds.read()
    found = []
    for name, truth, patient in patients(every):
        output = judge(trajectory_of(patient), thresholds)
        watch = tuple(each.condition for each in output.verdicts if each.grade is Grade.WATCH)
        found.append(Finding(name, truth, output.conditions, watch))
    return found


def patients(every: int = 1) -> Iterator[tuple[str, Condition | None, Patient]]:
    """Give the validation zoo, one after the other: every N-th case of it."""
    for animal, case in list(cases([*HEALTHY, *BROKEN], VALIDATION))[::every]:
        yield animal.name, animal.condition, animal.build(case)
    real = pretrained()
    if real is not None:
        yield "MiniLM, pretrained", None, real


def confusion_table(findings: list[Finding]) -> str:
    """What was done to a model, against what the doctor calls ill in it; in Markdown."""
    columns = list(CORE)
    head = ["what it is", "models", "right", *(each.value for each in columns), "watch only"]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for truth in (None, *columns):
        rows = [each for each in findings if each.truth is truth]
        right = sum(each.right for each in rows)
        cells = [str(sum(column in each.ill for each in rows) or "") for column in columns]
        if truth is not None:
            k = columns.index(truth)
            cells[k] = f"**{cells[k] or 0}**"
        cells.append(str(sum(bool(each.watch) and not each.ill for each in rows) or ""))
        name = "healthy" if truth is None else truth.value
        lines.append("| " + " | ".join([name, str(len(rows)), str(right), *cells]) + " |")
    return "\n".join(lines)
