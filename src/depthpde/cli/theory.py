"""``depthpde theory``: every claim predicted, measured and judged."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from depthpde.theory.claim import Claim, Finding

SUMMARY = "check every claim of the theory by numbers and write a page of plots"
EXAMPLES = """examples:
  depthpde theory
  depthpde theory --only cfl --only heat-kernel --out out/two-claims
  depthpde theory --json > theory.json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument(
        "--only",
        metavar="NAME",
        action="append",
        default=[],
        help="check this claim alone (may be given again)",
    )
    parser.add_argument(
        "--out",
        metavar="DIR",
        type=Path,
        default=Path("out/theory"),
        help="where theory.json and theory.html go (default: out/theory)",
    )
    parser.add_argument("--json", action="store_true", help="print the record instead of the table")


def run(arguments: argparse.Namespace) -> int:
    """Check the claims, print the table, write the record and the page.

    Returns:
        0 if every verdict holds, 1 if one does not.
    """
    from depthpde.errors import check_folder
    from depthpde.files import write_whole
    from depthpde.theory.claim import TheoryVerdict
    from depthpde.theory.page import render_page
    from depthpde.theory.record import overall, to_json
    from depthpde.theory.registry import CLAIMS

    claims = _choose(CLAIMS, arguments.only)
    check_folder("--out", arguments.out)
    findings = _examine(claims)
    record, page = arguments.out / "theory.json", arguments.out / "theory.html"
    arguments.out.mkdir(parents=True, exist_ok=True)
    write_whole(record, to_json(findings))
    write_whole(page, render_page(findings))
    if arguments.json:
        sys.stdout.write(to_json(findings))
    else:
        _print_table(findings)
        print(f"\nrecord {record}\npage   {page}")
    return 0 if overall(findings) is TheoryVerdict.HOLDS else 1


def _choose(claims: dict[str, Claim], only: Sequence[str]) -> list[Claim]:
    from depthpde.errors import check_name

    names = [check_name("--only", name, claims) for name in only]
    return [claim for name, claim in claims.items() if not names or name in names]


def _examine(claims: Sequence[Claim]) -> list[Finding]:
    """Examine claim by claim: a bar on a terminal, one quiet line each in a log."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from depthpde.theory.claim import examine

    console = Console(stderr=True)
    if not console.is_terminal:
        findings = []
        for number, claim in enumerate(claims, start=1):
            findings.append(examine(claim))
            line = f"[{number}/{len(claims)}] {claim.name}: {findings[-1].verdict.value}"
            print(line, file=sys.stderr, flush=True)
        return findings
    columns = (TextColumn("{task.description:18}"), BarColumn(), MofNCompleteColumn())
    findings = []
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=len(claims))
        for claim in claims:
            progress.update(task, description=claim.name)
            findings.append(examine(claim))
            progress.advance(task)
    return findings


def _print_table(findings: Sequence[Finding]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from depthpde.theory.claim import TheoryVerdict
    from depthpde.theory.page import MARKS, spell_number, spell_prediction

    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("claim", no_wrap=True)
    table.add_column("quantity", ratio=1)
    for name in ("predicted", "measured"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for finding in findings:
        headline, verdict = finding.checks[0], finding.verdict
        table.add_row(
            finding.name,
            Text(headline.quantity, style="dim"),
            spell_prediction(headline),
            spell_number(headline.measured),
            Text(
                f"{MARKS[verdict]} {verdict.value}",
                style="green" if verdict is TheoryVerdict.HOLDS else "bold red",
            ),
        )
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(table)
    _print_what_failed(findings)


def _print_what_failed(findings: Sequence[Finding]) -> None:
    from depthpde.theory.page import spell_number, spell_prediction

    for finding in findings:
        wrong = [check for check in finding.checks if not check.holds]
        for check in wrong:
            compared = f"{spell_prediction(check)}, measured {spell_number(check.measured)}"
            print(f"{finding.name} fails: {check.quantity}: predicted {compared}")
        if not wrong and finding.refutation.holds:
            print(f"{finding.name} is blind: {finding.counterexample} passes its check too")
