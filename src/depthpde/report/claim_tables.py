"""Claims and the tables beside them as tables: what every form of export is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from depthpde.pages.formatting import file_names, format_p
from depthpde.pages.table import Table, TableEntry
from depthpde.records.findings import (
    Findings,
    JudgedClaim,
    columns_of,
    spell_effect,
    spell_power,
    spell_value,
    typeset,
)

Cell = str | float | int | bool | None


def claim_tables(findings: Sequence[Findings]) -> dict[str, dict[str, Table]]:
    """Return experiment → stem of a file → table: its claims first, then what stands beside them.

    Args:
        findings: What experiments ended in.
    """
    stems = file_names([each.name for each in findings])
    return {each.name: _tables(each, stems[each.name]) for each in findings}


def _tables(found: Findings, stem: str) -> dict[str, Table]:
    beside = {title: rows for title, rows in found.tables.items() if rows}
    names = file_names(list(beside))
    tables = {f"{stem}-{names[title]}": _beside(title, rows) for title, rows in beside.items()}
    return {stem: _claims(found)} | tables


def _claims(found: Findings) -> Table:
    heads = ("claim", "finding", "verdict", "n", "effect [95 %]", "p", "80 % power from")
    return Table(
        title=f"{found.name} · {found.scale} · {found.question}",
        heads=heads,
        rows=tuple(_claim(each) for each in found.claims),
        notes=found.notes,
        tidy=tuple(_tidy(each) for each in found.claims),
    )


def _claim(claim: JudgedClaim) -> tuple[TableEntry, ...]:
    p = "" if claim.p is None else format_p(claim.p)
    texts = (claim.claim, claim.finding, claim.verdict.value, str(claim.n), spell_effect(claim), p)
    return tuple(TableEntry(typeset(each)) for each in (*texts, spell_power(claim)))


def _tidy(claim: JudgedClaim) -> dict[str, Cell]:
    low, high = claim.interval or (None, None)
    return {
        "claim": claim.claim, "finding": claim.finding, "verdict": claim.verdict.value,
        "n": claim.n, "effect": claim.effect, "low": low, "high": high, "p": claim.p,
        "least": claim.least,
    }  # fmt: skip


def _beside(title: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    heads = columns_of(rows)
    columns = {head: _column([row.get(head) for row in rows]) for head in heads}
    return Table(
        title=title,
        heads=heads,
        rows=tuple(
            tuple(TableEntry(typeset(spell_value(row.get(head)))) for head in heads) for row in rows
        ),
        tidy=tuple({head: columns[head][at] for head in heads} for at in range(len(rows))),
    )


def _column(values: Sequence[Any]) -> Sequence[Cell]:
    """Return the values of a column, as texts where they are not of one plain kind."""
    kinds = {type(each) for each in values if each is not None}
    if kinds <= {int, float}:
        return [None if each is None else each + 0.0 if float in kinds else each for each in values]
    plain = len(kinds) == 1 and kinds <= {str, bool}
    return list(values) if plain else [None if each is None else str(each) for each in values]
