"""``depthpde protocol``: what was fixed before the first run, and whether the runs followed it."""

from __future__ import annotations

import argparse
import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from depthpde.records.protocols.protocol import PlannedContrast, StudyProtocol
    from depthpde.sweeps.grid import Plan

SUMMARY = "show what an experiment fixed before its first run, or check its runs against it"
EXAMPLES = """examples:
  depthpde protocol show stencil
  depthpde protocol check stencil --out results
  depthpde protocol check my-grid.yaml --json

A grid file of your own may carry a protocol under the key study; docs/sweeps.md shows one.
exit code of check: 0; 1 if failed gates ended the experiment, or if runs were made under another
protocol or with other settings than its plan
"""
RESULTS = Path("out/results")
SIGNS = {"greater": ">", "equivalent": "="}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    add = parser.add_argument
    add("action", choices=("show", "check"), metavar="show|check", help="what to do")
    add("name", metavar="NAME|FILE", help="an experiment, or a grid of your own")
    add("--out", type=Path, default=RESULTS, metavar="RESULTS", help=f"default: {RESULTS}")
    add("--json", action="store_true", help="print it as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Show a protocol, or check the runs of a results folder against it."""
    from depthpde.sweeps.grid_file import FILES, read_plan

    name = arguments.name
    plan = read_plan(Path(name)) if name.endswith(FILES) else _experiment(name)
    if plan.study is None:
        raise ValueError(
            f"`NAME` must be an experiment with a protocol, got {plan.name!r}, which has none: its "
            "runs are exploratory; give a grid file one under the key study"
        )
    if arguments.action == "show":
        values = {"digest": plan.study.digest, **plan.study.to_dict()}
        print(json.dumps(values, indent=1) if arguments.json else _text(plan.study, plan))
        return 0
    return _check(plan, arguments)


def _experiment(name: str) -> Plan:
    from depthpde.errors import check_name
    from depthpde.papers.registry import EXPERIMENTS

    experiment = EXPERIMENTS[check_name("NAME", name, EXPERIMENTS)]
    if experiment.protocol is None:
        known = ", ".join(each.name for each in EXPERIMENTS.values() if each.protocol is not None)
        raise ValueError(
            f"`NAME` must be an experiment with a protocol, {known}, got {name!r}: its runs came "
            "before there were protocols and are exploratory"
        )
    return experiment.plan()


def _check(plan: Plan, arguments: argparse.Namespace) -> int:
    from depthpde.sweeps.study_check import check_study

    if not arguments.out.is_dir():
        mend = shlex.join(["depthpde", "reproduce", arguments.name, "--out", str(arguments.out)])
        raise ValueError(
            f"`RESULTS` must be a folder, got {arguments.out}, which is none; name another with "
            f"--out, or make its runs with: {mend}"
        )
    found = check_study(plan, arguments.out)
    print(json.dumps(found.to_dict(), indent=1) if arguments.json else found.text())
    return int(not found.followed)


def _text(protocol: StudyProtocol, plan: Plan) -> str:
    """Return a protocol as lines of text, in the order in which it is followed."""
    from depthpde.papers.claims import MARGIN
    from depthpde.papers.confirmatory.conclusion import SIGN_MARGIN
    from depthpde.sweeps.study_tests import doubts_of

    share = protocol.tuning_share
    when = "" if share is None else f" at {share:.0%} of the updates"
    gates = [f"  {g.task} {g.endpoint} above {g.least:g} ({g.words})" for g in protocol.gates]
    tests = [f"  {number}. {_test(each)}" for number, each in enumerate(protocol.contrasts, 1)]
    return "\n".join(
        [
            f"{protocol.name} · protocol {protocol.digest}",
            protocol.question,
            f"tasks     {', '.join(plan.bases)}",
            f"variants  {' · '.join(each.label for each in plan.variants)}",
            f"rates     {', '.join(f'{each:g}' for each in protocol.rates)}, one for each variant "
            f"and task, on seeds {_spelled(protocol.tuning_seeds)}{when}",
            *(["gates, of the baseline alone", *gates] if gates else ["gates     none"]),
            f"seeds     {_spelled(protocol.test_seeds)}",
            f"looks     {', '.join(f'{e.seeds} seeds at level {e.p:g}' for e in protocol.looks)}",
            "tests, each a gate to the next",
            *tests,
            "same      a test for more that shows neither side may end as equivalent: within "
            f"±{MARGIN:g} points, ±{SIGN_MARGIN:g} of a sign",
            f"ends      {protocol.stopping}",
            *(f"doubt     {each}" for each in doubts_of(plan)),
        ]
    )


def _test(contrast: PlannedContrast) -> str:
    """Write a test as a line; what an interaction takes off is part of it."""
    sides = f"{contrast.variant} {SIGNS[contrast.claimed]} {contrast.against}"
    if contrast.beyond is not None:
        first, second = contrast.beyond
        sides = f"{contrast.variant} − {contrast.against} {SIGNS[contrast.claimed]} "
        sides += f"{first} − {second}"
    margin = f", margin {contrast.margin:g}" if contrast.margin else ""
    return f"{sides} in {contrast.endpoint}{margin}"


def _spelled(seeds: tuple[int, ...]) -> str:
    whole = len(seeds) > 2 and seeds == tuple(range(seeds[0], seeds[-1] + 1))
    return f"{seeds[0]}–{seeds[-1]}" if whole else ", ".join(map(str, seeds))
