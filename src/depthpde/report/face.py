"""How a report's numbers are written and where they lead: what every page of it shares."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from depthpde.pages.formatting import anchor, format_p, plain
from depthpde.records.findings import (
    JudgedClaim,
    columns_of,
    spell_effect,
    spell_power,
    spell_value,
    typeset,
)
from depthpde.records.probes import WORDS
from depthpde.records.verdicts import Outcome
from depthpde.report.grid_section import GridSection
from depthpde.report.sentences import MARKS
from depthpde.report.variant_section import cell_anchor, variant_anchor

TONES = {Outcome.SUPPORTED: "confirmed", Outcome.CONTRADICTED: "refused"}


@dataclass(frozen=True, slots=True)
class Face:
    """What templates call to write a number."""

    main: frozenset[str] = frozenset(WORDS)
    """Measures by depth that are shown first."""

    def table(self, grid_section: GridSection) -> Markup:
        """Write the paired table of a grid."""
        return Markup(grid_section.table.html(_link(grid_section)))

    def cost(self, grid_section: GridSection) -> Markup:
        """Write the costs of a grid."""
        return Markup(grid_section.cost.html(_link(grid_section)))

    def plain(self, name: str) -> str:
        """Write a name without the underscores of code."""
        return plain(name)

    def mark(self, verdict: Outcome) -> str:
        """Return the sign of a verdict."""
        return MARKS[verdict]

    def tone(self, verdict: Outcome) -> str:
        """Return the class of a verdict."""
        return TONES.get(verdict, "")

    def effect(self, claim: JudgedClaim) -> str:
        """Write an effect and its interval."""
        return typeset(spell_effect(claim))

    def power(self, claim: JudgedClaim) -> str:
        """Write which difference the pairs would have shown."""
        return spell_power(claim)

    def chance(self, p: float | None) -> str:
        """Write a p-value; nothing where there is none."""
        return "" if p is None else format_p(p)

    def value(self, value: Any) -> str:
        """Write what a table of findings holds."""
        return typeset(spell_value(value))

    def columns(self, rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        """Return the columns of a table of findings."""
        return columns_of(rows)

    def claims(self, name: str) -> str:
        """Return where an experiment's claims stand on a page."""
        return anchor("claims", name)


def _link(grid_section: GridSection) -> Callable[[tuple[str, str]], str]:
    """Return where the numbers of tables lead: a cell to its runs, a mean to its section."""

    def link(cell: tuple[str, str]) -> str:
        task, variant = cell
        if task:
            return f"#{cell_anchor(grid_section.evidence, task, variant)}"
        if variant == grid_section.evidence.baseline:
            return "#runs"
        return f"#{variant_anchor(grid_section.evidence, variant)}"

    return link
