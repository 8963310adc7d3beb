"""The doctor: from measures to verdicts in plain words, each with its evidence and an advice.

    probe  →  one number for each condition  →  compared with thresholds that are data  →  a grade

A verdict is never more than its number: what was not measured has none, and is listed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from depthpde.doctor.checks.design import NO_EXCUSE, design_symptoms
from depthpde.doctor.checks.examination import examine
from depthpde.doctor.conditions.condition import Condition, Symptom
from depthpde.doctor.conditions.table import symptoms
from depthpde.doctor.depth_profile import DepthProfile
from depthpde.doctor.measurements import GROUPS
from depthpde.doctor.pages.page import by_reason, render_page
from depthpde.doctor.probe import Batch, Loss, probe
from depthpde.doctor.thresholds import OWN, Grade, Thresholds
from depthpde.doctor.verdict import HealthVerdict, one_a_row, worst_first, worst_grade
from depthpde.files import read_json
from depthpde.insertion.family import Family
from depthpde.pages.formatting import text_block

NAMES = {
    "gradient": "gradients",
    "gradient.weights": "gradients of weights",
    "attention": "attention entropy",
    "coupling.frozen": "commutator with attention as it is",
    "coupling.nonlinear": "commutator with attention computed anew",
    "spectrum.weights": "spectra of weights",
}
"""What a person calls what is missing."""
CORE = (
    Condition.DRIFT, Condition.RANK, Condition.SMOOTHING, Condition.ENTROPY, Condition.EXPLODING,
    Condition.VANISHING, Condition.DIFFUSION, Condition.LEAK, Condition.DEAD,
)  # fmt: skip
"""Conditions whose evidence is printed even where it is healthy; the others are named."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Verdicts, the worst first, and the measures behind them.

    >>> model = dp.Classifier(dp.ModelConfig(dim=16, vocabulary=9, length=12, classes=3))
    >>> path = dp.diagnose(model, torch.randint(9, (4, 12))).save("doctor.html")
    """

    trajectory: DepthProfile
    verdicts: tuple[HealthVerdict, ...]
    unmeasured: dict[str, str]
    """What has no verdict, by the name of its row, and why."""

    @property
    def grade(self) -> Grade:
        """The worst grade."""
        return worst_grade(self.verdicts)

    @property
    def severity(self) -> float:
        """How ill, as one number: 0 healthy, 1 worth watching, 2 ill, at most 4."""
        return max((each.severity for each in self.verdicts), default=0.0)

    @property
    def component(self) -> str:
        """The part of a Transformer that the worst verdict names; empty if nothing is ill."""
        ill = [each for each in self.verdicts if each.grade is Grade.ILL and each.component]
        return ill[0].component if ill else ""

    @property
    def conditions(self) -> tuple[str, ...]:
        """What is ill."""
        return tuple(each.condition for each in self.verdicts if each.grade is Grade.ILL)

    def save(self, path: str | Path) -> Path:
        """Write the diagnosis as one self-contained HTML page, and return where it is."""
        page = render_page(self.head(), self.trajectory, self.verdicts, self.unmeasured)
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(page, encoding="utf-8")
        return target

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "grade": self.grade.value,
            "verdicts": [each.to_dict() for each in self.verdicts],
            "unmeasured": self.unmeasured,
            "trajectory": self.trajectory.to_dict(),
        }

    @classmethod
    def read(cls, path: str | Path) -> Diagnosis:
        """Read a diagnosis from the JSON that `to_dict` gives and `depthpde doctor --json` prints.

        Args:
            path: The file.
        """
        wanted = "a file that `depthpde doctor --json` wrote"
        plain = read_json(Path(path))
        try:
            verdicts = tuple(HealthVerdict.from_dict(each) for each in plain["verdicts"])
            seen = DepthProfile.from_dict(plain["trajectory"])
            return cls(seen, verdicts, dict(plain["unmeasured"]))
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(
                f"`path` must be {wanted}, got {str(path)!r} without {error}; write it again with "
                "json.dumps(diagnosis.to_dict())"
            ) from error

    def head(self) -> str:
        """Say in one line what was examined."""
        seen = self.trajectory
        parts = (
            seen.model,
            f"{seen.blocks} block{'s' * (seen.blocks != 1)}",
            f"{spell_count(seen.parameters)} parameters",
            f"{seen.sequences} sequence{'s' * (seen.sequences != 1)}",
            f"{seen.seconds:.1f} s",
        )
        return " · ".join(parts)

    def __str__(self) -> str:
        """Print the verdicts as a person reads them."""
        rows = one_a_row(self.verdicts)
        shown = [each for each in rows if each.grade is not Grade.HEALTHY or each.condition in CORE]
        wide = max((len(each.threshold.row) for each in shown), default=0)
        lines = [self.head()]
        for each in shown:
            lines.append(f" {each.grade.value:<8}  {each.threshold.row:<{wide}}  {each.evidence}")
            if each.advice:
                lines.append(f" {'':8}  {'':<{wide}}  → {each.advice}")
                if each.grade is Grade.ILL and each.threshold.why:
                    link = f"docs/troubleshooting.md#{each.threshold.why}"
                    lines.append(f" {'':8}  {'':<{wide}}    why: {link}")
        more = [each.threshold.row for each in rows if each not in shown]
        if more:
            lines.append(f" {'healthy':<8}  also {', '.join(more)}")
        lines += [
            f" not measured: {name} ({why})" for name, why in by_reason(self.unmeasured).items()
        ]
        lines += [f" note: {note}" for note in self.trajectory.notes]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return text_block(str(self))


def diagnose(
    model: nn.Module,
    batch: Batch,
    *,
    labels: Tensor | None = None,
    loss: Loss | None = None,
    family: Family | None = None,
    stack: str | None = None,
    reference: nn.Module | None = None,
    baseline: bool = True,
    checks: bool = True,
    thresholds: Thresholds | None = None,
) -> Diagnosis:
    """Tell whether the depth-dynamics of a model are healthy.

    The model is left as it was; see `probe`.

    >>> model = dp.Classifier(dp.ModelConfig(dim=16, vocabulary=9, length=12, classes=3))
    >>> diagnosis = dp.diagnose(model, torch.randint(9, (4, 12)), labels=torch.randint(3, (4,)))

    Args:
        model: One of our models, or one of a family that `insertion` knows.
        batch: What the model is called with: one tensor, or its positional or named arguments.
        labels: The right answers; without them (or `loss`) gradients are not measured. Those of a
            batch that has ``labels`` are found.
        loss: Takes the output (and the labels, if given) and gives the loss instead.
        family: The description of a family that is not known.
        stack: The module that holds the blocks, where there are several; see `probe`.
        reference: A healthy model of the same modules, such as the model before a change: the first
            module that computes something else with the same weights is named, and the weights
            that moved out of proportion.
        baseline: Whether to run a random network of the same shapes beside it.
        checks: Whether to inspect the weights and make a few more passes: positions, padding,
            cache, modes. Without them one pass is judged.
        thresholds: Where a condition begins; the calibrated ones by default.
    """
    trajectory = probe(
        model,
        batch,
        labels=labels,
        loss=loss,
        family=family,
        stack=stack,
        baseline=baseline,
        groups=GROUPS,
        modules=checks,
    )
    if checks or reference is not None:
        trajectory = examine(
            trajectory, model, batch, family=family, stack=stack, reference=reference, checks=checks
        )
    said = judge(trajectory, thresholds)
    doubtful = [each for each in said.conditions if each not in NO_EXCUSE]
    if not checks or family is not None or not doubtful:
        return said
    floor = (thresholds or Thresholds.read()).entropy_floor
    design = design_symptoms(model, batch, stack=stack, entropy_floor=floor)
    verdicts = [
        replace(each, grade=Grade.WATCH, by_design=True) if _is_design(each, design) else each
        for each in said.verdicts
    ]
    return replace(said, verdicts=worst_first(verdicts))


def _is_design(verdict: HealthVerdict, design: dict[str, Symptom]) -> bool:
    """Tell whether a new model shows what is ill, in the same matrix where it is one."""
    there = design.get(verdict.condition)
    if verdict.grade is not Grade.ILL or there is None:
        return False
    if verdict.condition == Condition.EMPTY_WEIGHTS and there.where != verdict.symptom.where:
        return False
    return verdict.threshold.grade(there.value) is not Grade.HEALTHY


def judge(trajectory: DepthProfile, thresholds: Thresholds | None = None) -> Diagnosis:
    """Turn measures into verdicts.

    Args:
        trajectory: What was measured.
        thresholds: Where a condition begins; the calibrated ones by default.
    """
    limits = thresholds or Thresholds.read()
    verdicts, unmeasured = list[HealthVerdict](), dict[str, str]()
    for condition, sign in symptoms(trajectory, entropy_floor=limits.entropy_floor).items():
        limit = limits.of.get(condition) or OWN[condition]
        if isinstance(sign, Symptom):
            grade = limit.grade(sign.value)
            verdicts.append(HealthVerdict(condition, grade, sign, limit))
        else:
            unmeasured.setdefault(limit.row, sign.reason)
    shown = {each.threshold.row for each in verdicts}
    unmeasured = {row: why for row, why in unmeasured.items() if row not in shown}
    for name, why in trajectory.missing.items():
        unmeasured.setdefault(NAMES.get(name, name), why)
    if "attention" in trajectory.missing:
        unmeasured.pop(NAMES["coupling.frozen"], None)
    return Diagnosis(trajectory, worst_first(verdicts), unmeasured)


def spell_count(count: int) -> str:
    """Write a number of parameters as a person would."""
    for size, letter in ((1e9, "B"), (1e6, "M"), (1e3, "K")):
        if count >= size:
            return f"{count / size:.1f} {letter}"
    return str(count)
