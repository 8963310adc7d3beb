"""run_demo(results) → Demo: look at a real model, train three small ones, write the page."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from depthpde.comparison.entrant import recorded
from depthpde.comparison.report import ComparisonReport
from depthpde.demo.look import PretrainedLook, look
from depthpde.demo.page import headline, render_page
from depthpde.demo.text import SEEDS, UPDATES, plan
from depthpde.files import write_whole
from depthpde.records.evidence import gather
from depthpde.records.record import read_records
from depthpde.records.scores import Endpoint
from depthpde.sweeps.board import TerminalBoard
from depthpde.sweeps.compute import compute
from depthpde.sweeps.executor import Folders
from depthpde.sweeps.pool import Pool
from depthpde.sweeps.sweep import SweepOutcome

PAGE = "demo.html"


@dataclass(frozen=True, kw_only=True, slots=True)
class Demo:
    """What the demo showed."""

    seen: PretrainedLook
    report: ComparisonReport
    headline: str
    page: Path
    outcome: SweepOutcome
    seconds: float


def run_demo(
    results: Path,
    *,
    seeds: int = SEEDS,
    updates: int = UPDATES,
    workers: int = 1,
    log: Callable[[str], None] = lambda line: None,
) -> Demo:
    """Run the demo; what is recorded is not computed again.

    Args:
        results: The results folder; the page is written there.
        seeds: Paired seeds.
        updates: Of every run.
        workers: Processes.
        log: Called with each of the three steps.
    """
    began = time.monotonic()
    asked = plan(results, seeds=seeds, updates=updates)
    log("1 of 3 · doctor and audit on MiniLM, a pretrained model of 22.7 million parameters")
    seen = look()
    for each in (seen.missing, seen.diagnosis, seen.audit):
        if each:
            log(f"{each}\n")
    log(f"2 of 3 · {len(asked.runs)} small GPTs, {updates} updates each, {workers} at a time")
    pool = Pool(Folders(results, prepared=results / "tasks"), workers)
    with TerminalBoard(asked.grid, results) as board:
        outcome = compute(
            asked, pool, retry_failed=True, log=log, callback=lambda ended: board.look()
        )
    evidence = gather(asked.grid, read_records(results).found)
    begun = evidence.records(evidence.baseline)  # none where it was interrupted before its end
    entrants = recorded(evidence, Endpoint.LOSS) if begun else []
    (task,) = evidence.tasks
    report = ComparisonReport(task=task, endpoint=Endpoint.LOSS, entrants=entrants, results=results)
    log("3 of 3 · the page")
    page = results / PAGE
    if entrants and not outcome.interrupted:
        write_whole(page, render_page(report, seen))
    return Demo(
        seen=seen,
        report=report,
        headline=headline(report),
        page=page,
        outcome=outcome,
        seconds=time.monotonic() - began,
    )
