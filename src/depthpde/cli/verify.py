"""``depthpde verify``: is everything in a results folder as it was written?"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from depthpde.records.verification import Verification

SUMMARY = "check every record of a results folder: sizes, checksums, totals"
EXAMPLES = """examples:
  depthpde verify results
  depthpde verify out/results --json > verified.json

Reads every file, changes none. Exits with 1 where something is not as it was written. Records made
before there were checksums are counted apart: only what can be recomputed is checked in them."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument("results", metavar="RESULTS", type=Path, help="a folder that runs wrote")
    parser.add_argument("--json", action="store_true", help="print what was found as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Check a results folder and print what is wrong with it.

    Returns:
        0 where nothing is, else 1.
    """
    from depthpde.records.verification import verify

    found = verify(arguments.results)
    if arguments.json:
        print(json.dumps(_plain(found), indent=1))
    else:
        for each in found.broken:
            print(f"broken: {each.path}: {each.reason}")
        print(
            f"{len(found.whole)} whole, {len(found.without_checksums)} without checksums, "
            f"{len(found.unfinished)} unfinished, {len(found.broken)} broken; "
            f"{len(found.without_weights)} without weights"
        )
    return int(bool(found.broken))


def _plain(found: Verification) -> dict[str, object]:
    names = ("whole", "without_checksums", "without_weights", "unfinished")
    payload = {name: list(getattr(found, name)) for name in names}
    return payload | {"broken": {str(each.path): each.reason for each in found.broken}}
