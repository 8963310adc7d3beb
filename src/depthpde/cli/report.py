"""``depthpde report``: results folders as pages, tables and figures."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from depthpde.report.grid_section import GridSection
    from depthpde.report.page import Report

SUMMARY = "write pages, tables and figures about finished runs"
EXAMPLES = """examples:
  depthpde report results
  depthpde report out/demo --out out/demo-report
  depthpde report results other/results --paper     (figures as PDF too)
  depthpde report results --single-file --out to-send     (one page instead of many)
  depthpde report results --json > numbers.json
  depthpde report results --fill README.md     (what stands between its marks is made anew)
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument(
        "results", metavar="RESULTS", type=Path, nargs="+", help="folders that a sweep wrote"
    )
    parser.add_argument(
        "--out",
        metavar="FOLDER",
        type=Path,
        default=None,
        help="where the report goes (default: RESULTS/report)",
    )
    parser.add_argument(
        "--paper", action="store_true", help="write figures as PDF too; needs depthpde[paper]"
    )
    parser.add_argument(
        "--single-file", action="store_true", help="one page that holds everything, to send around"
    )
    parser.add_argument(
        "--parquet", action="store_true", help="write tables as Parquet too; needs pyarrow"
    )
    parser.add_argument(
        "--fill",
        metavar="PAGE",
        type=Path,
        nargs="+",
        default=[],
        help="Markdown pages whose marked tables are made anew from the records",
    )
    parser.add_argument("--json", action="store_true", help="print the numbers instead of tables")


def run(arguments: argparse.Namespace) -> int:
    """Write the report, print its tables and where it lies.

    Returns:
        0; 1 where no run has a result. Broken records are listed and do not stop it.
    """
    from depthpde.cli.reading_bar import reading_bar
    from depthpde.errors import check_folder
    from depthpde.report.markdown_blocks import fill_pages, parts_of
    from depthpde.report.page import make_report

    if arguments.out is not None:
        check_folder("--out", arguments.out)
    for page in arguments.fill:
        _check_page(page)
    report = make_report(
        arguments.results,
        arguments.out,
        paper=arguments.paper,
        single_file=arguments.single_file,
        parquet=arguments.parquet,
        progress=reading_bar(sys.stderr),
    )
    changed = fill_pages(arguments.fill, parts_of(report.grid_sections, report.results.findings))
    for page in changed:
        print(f"filled: {page}", file=sys.stderr)
    for broken in report.results.broken:
        print(f"unread: {broken.path}: {broken.reason}", file=sys.stderr)
    code = 0 if report.grid_sections else 1
    if arguments.json:
        json.dump(_numbers(report), sys.stdout, indent=2, ensure_ascii=False)
        print()
        return code
    for grid_section in report.grid_sections:
        print(grid_section.table.text())
    for sentence in report.grid_sections[0].verdict if report.grid_sections else ():
        print(f"{sentence.mark} {sentence.strong} {sentence.text}")
    print(f"\npage    {report.page}")
    print(f"tables  {report.page.parent / 'tables'}\nfigures {report.page.parent / 'figures'}")
    return code


def _check_page(page: Path) -> None:
    if not page.is_file():
        raise FileNotFoundError(
            f"`--fill` must name pages that are there, got {page}; write it first, with a mark "
            "such as <!-- depthpde: table placement --> and <!-- /depthpde --> below it"
        )


def _numbers(report: Report) -> dict[str, object]:
    return {
        "page": str(report.page),
        "grids": {
            grid_section.evidence.name: _grid(grid_section) for grid_section in report.grid_sections
        },
        "unread": {str(each.path): each.reason for each in report.results.broken},
    }


def _grid(grid_section: GridSection) -> dict[str, object]:
    return {
        "question": grid_section.evidence.question,
        "baseline": grid_section.evidence.baseline,
        "verdict": [f"{each.strong} {each.text}" for each in grid_section.verdict],
        "warnings": list(grid_section.table.warnings),
        "numbers": [dict(row) for row in grid_section.table.tidy],
        "costs": [dict(row) for row in grid_section.cost.tidy],
    }
