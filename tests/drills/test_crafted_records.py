"""Crafted records against `report` and `dash`: every page is drawn, nothing of a stranger runs."""

from __future__ import annotations

import csv
import random
import resource
import time
from pathlib import Path

import pytest

from depthpde.records.results import read_results
from depthpde.report.page import write_report
from drills.crafted_records import craft
from report import synthesis
from web.conftest import serving

SEED = 20
MEMORY = 1 << 20
"""KB by which the process may grow: far less than one sparse file holds."""


def crafted(results: Path, number: int, seed: int) -> tuple[list[str], dict[str, str]]:
    """Write a small grid that is whole, and crafted records beside it."""
    grid = synthesis.write_placement(
        results, tasks=("listops-mini",), variants=("baseline", "after_embedding"), seeds=6
    )
    good = [cell.run for cell in grid.cells]
    chance, done = random.Random(seed), {}
    for k in range(number):
        name = f"{k:016x}"
        done[name] = craft(results / "runs" / chance.choice(good), results / "runs" / name, chance)
    return good, done


def check(results: Path, good: list[str], asked: list[str]) -> None:
    """Draw the report and the pages, and look at all of them."""
    began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = read_results(results, stored=False)
    assert set(good) <= set(found.records)
    page = write_report(results, results / "report")
    texts = [path.read_text() for path in page.parent.rglob("*.html")]
    for path in page.parent.rglob("*.csv"):
        with path.open(newline="") as stream:
            cells = [cell for row in csv.reader(stream) for cell in row]
        assert not any(cell[:1] in "=@" and len(cell) > 1 for cell in cells), path
    with serving(results) as site:
        for address in ("/", "/compare", "/theory", *(f"/run/{name}" for name in asked)):
            status, _, text = site.get(address)
            assert status in (200, 404), (address, status)
            texts.append(text)
        assert site.get("/")[0] == 200
    assert not any("<script>alert(7)" in text or "<img src=x" in text for text in texts)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < MEMORY, f"{grown} KB more"
    assert time.monotonic() - began < 300


def test_twenty_crafted_records_take_nothing_else_down(tmp_path):
    good, done = crafted(tmp_path, 20, SEED + 1)
    check(tmp_path, good, [*good[:1], *list(done)[:5]])


@pytest.mark.drill
def test_seven_hundred_crafted_records_take_nothing_else_down(tmp_path, tally):
    good, done = crafted(tmp_path, 700, SEED)
    check(tmp_path, good, [*good, *list(done)[::3]])
    held = "every page of `report` and `dash` is drawn, good records are shown, no markup runs"
    tally(f"Crafted records, seed {SEED}", len(done), held)
