"""Two diagnoses side by side: before and after a change, or a model and its reference.

    worse    a grade nearer to ill      better    a grade nearer to healthy      same    the rest

Both may come from files, so that a comparison needs neither model.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from depthpde.doctor.diagnosis import Diagnosis
from depthpde.doctor.pages.comparison_page import ComparedVerdict, render_comparison
from depthpde.doctor.thresholds import Grade
from depthpde.doctor.verdict import ORDER
from depthpde.pages.formatting import text_block

CHANGES = ("worse", "better", "new", "gone", "same")
"""In the order in which they are listed; new and gone: measured in one of the two only."""


@dataclass(frozen=True, slots=True)
class DiagnosisComparison:
    """What changed between two diagnoses.

    >>> model = dp.Classifier(dp.ModelConfig(dim=16, vocabulary=9, length=12, classes=3))
    >>> before = dp.diagnose(model, torch.randint(9, (4, 12)), baseline=False)
    >>> dp.compare_diagnoses(before, before).worse
    ()
    """

    before: Diagnosis
    after: Diagnosis
    names: tuple[str, str]
    """What the two are called."""

    @property
    def rows(self) -> tuple[ComparedVerdict, ...]:
        """Every condition with both verdicts, those that changed first."""
        first, second = (
            {each.condition: each for each in diagnosis.verdicts}
            for diagnosis in (self.before, self.after)
        )
        found = []
        for condition in dict.fromkeys((*second, *first)):
            a, b = first.get(condition), second.get(condition)
            if a is None or b is None:
                known = a or b
                assert known is not None, "one of the two has it"
                fine = known.grade is Grade.HEALTHY
                change = "same" if fine else "new" if a is None else "gone"
            else:
                step = ORDER.index(b.grade) - ORDER.index(a.grade)
                change = "same" if step == 0 else "worse" if step < 0 else "better"
            found.append(ComparedVerdict(condition, change, a, b))
        return tuple(sorted(found, key=lambda each: CHANGES.index(each.change)))

    @property
    def worse(self) -> tuple[str, ...]:
        """The conditions that are graded worse than before, or are found now alone."""
        return tuple(each.condition for each in self.rows if each.change in ("worse", "new"))

    def save(self, path: str | Path) -> Path:
        """Write the comparison as one self-contained HTML page, and return where it is."""
        heads = (self.before.head(), self.after.head())
        page = render_comparison(
            self.names, heads, (self.before.trajectory, self.after.trajectory), self.rows
        )
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(page, encoding="utf-8")
        return target

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "names": list(self.names),
            "grades": [self.before.grade.value, self.after.grade.value],
            "rows": [each.to_dict() for each in self.rows],
        }

    def __str__(self) -> str:
        """Print what changed, then how much did not."""
        wide = max(len(each) for each in self.names)
        lines = [
            f"{name:<{wide}}  {each.grade.value:<8}{each.head()}"
            for name, each in zip(self.names, (self.before, self.after), strict=True)
        ]
        changed = [each for each in self.rows if each.change != "same"]
        lines += [f" {each}" for each in changed]
        lines.append(f" {'same':<8}{len(self.rows) - len(changed)} conditions")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return text_block(str(self))


def compare_diagnoses(
    before: Diagnosis, after: Diagnosis, *, names: tuple[str, str] = ("before", "after")
) -> DiagnosisComparison:
    """Compare two diagnoses: what got worse, what got better, and every measure of both.

    >>> model = dp.Classifier(dp.ModelConfig(dim=16, vocabulary=9, length=12, classes=3))
    >>> tokens = torch.randint(9, (4, 12))
    >>> before = dp.diagnose(model, tokens, baseline=False)
    >>> _ = model.get_parameter("encoder.blocks.0.attention.value.weight").data.zero_()
    >>> path = dp.compare_diagnoses(before, dp.diagnose(model, tokens)).save("compared.html")

    Args:
        before: Of the model before a change, or of a reference; `Diagnosis.read` takes JSON.
        after: Of the model now.
        names: What the two are called on the page.
    """
    for name, each in (("before", before), ("after", after)):
        if not isinstance(each, Diagnosis):
            raise TypeError(
                f"`{name}` must be a Diagnosis, got {type(each).__name__}; use dp.diagnose, or "
                "dp.Diagnosis.read of the JSON that `depthpde doctor --json` prints"
            )
    return DiagnosisComparison(before, after, names)
