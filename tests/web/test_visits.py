"""Visits in a real browser: filter, sort, open, share an address, see a change; bad folders."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from depthpde.files import write_json
from depthpde.records.index.store import FOLDER
from depthpde.records.record import RESULT, STATUS, read_grid
from depthpde.report.page import write_report
from web.browser import Browser
from web.conftest import serving

LISTED = "[...document.querySelectorAll('#listing tbody tr')].map((r) => r.innerText)"


@pytest.fixture
def visitor(browser: Browser) -> Iterator[Browser]:
    """Return the browser as a desktop in the light."""
    browser.size(1400, 900)
    browser.paint("light")
    yield browser
    browser.open("about:blank")


def choose(visitor: Browser, name: str, value: str) -> None:
    visitor.wait("document.readyState === 'complete'")  # its script has run
    visitor.ask(
        f"(() => {{ const it = document.querySelector('#filters').elements['{name}'];"
        f"it.value = {json.dumps(value)};"
        "it.dispatchEvent(new Event('change', {bubbles: true})); })()"
    )


def fail(results: Path, run: str, error: str) -> None:
    (results / "runs" / run / RESULT).unlink()
    write_json(results / "runs" / run / STATUS, {"state": "failed", "error": error})


def test_a_visitor_filters_sorts_opens_and_shares_what_is_seen(
    visitor: Browser, results: Path
) -> None:
    cells = read_grid(results / "grids" / "placement.json").cells
    fail(results, cells[3].run, "out of memory")
    with serving(results) as site:
        visitor.open(site.address + "/")
        choose(visitor, "task", "text-mini")
        visitor.wait("location.search === '?task=text-mini'")
        visitor.wait("document.querySelectorAll('table.board thead th').length === 2")
        choose(visitor, "sort", "best")
        visitor.wait("document.querySelectorAll('#listing tbody tr').length === 18")
        reached = [float(row.split("\t")[2]) for row in visitor.ask(LISTED)]
        assert reached == sorted(reached, reverse=True)
        shared = visitor.ask("location.href")
        visitor.open("about:blank")
        visitor.open(shared)
        assert [float(row.split("\t")[2]) for row in visitor.ask(LISTED)] == reached
        visitor.open(site.address + "/?state=failed&q=memory")
        assert visitor.ask("document.querySelectorAll('#listing tbody tr').length") == 1
        visitor.ask("document.querySelector('#listing tbody a').click()")
        visitor.wait(f"location.pathname === '/run/{cells[3].run}'")
        visitor.wait("document.getElementById('state') !== null")
        printed = visitor.ask("document.getElementById('state').textContent")
        assert "out of memory" in printed
        assert "depthpde sweep placement --out results --retry-failed" in printed
        assert visitor.complaints == []


def test_a_filtered_list_changes_by_itself_within_two_seconds_of_the_file(
    visitor: Browser, results: Path
) -> None:
    cells = read_grid(results / "grids" / "placement.json").cells
    with serving(results) as site:
        visitor.open(site.address + "/?state=failed")
        visitor.wait("document.getElementById('live').dataset.state === 'on'")
        assert "0 runs" in visitor.ask("document.getElementById('listing').textContent")
        fail(results, cells[0].run, "torn cable")
        visitor.wait("document.getElementById('listing').textContent.includes('torn cable')")


def test_the_doctor_page_of_a_finished_run_has_a_verdict_from_its_probe(visitor: Browser) -> None:
    results = Path(__file__).parents[2] / "results"
    run = next(iter(sorted((results / "runs").glob("*/probe.json")))).parent.name
    copied = results.parent / "out" / "visit"
    shutil.rmtree(copied, ignore_errors=True)
    shutil.copytree(results / "runs" / run, copied / "runs" / run)
    try:
        with serving(copied) as site:
            visitor.open(f"{site.address}/run/{run}/doctor")
            printed = visitor.ask("document.getElementById('verdicts').textContent")
            assert "rank collapse" in printed
            assert "healthy" in printed
    finally:
        shutil.rmtree(copied)


def make_folder(kind: str, results: Path, tmp_path: Path) -> tuple[Path, str]:
    """Return a results folder that went bad, and what its page must say."""
    if kind == "empty":
        (tmp_path / "empty").mkdir()
        return tmp_path / "empty", "depthpde demo"
    if kind == "foreign":
        foreign = tmp_path / "foreign"
        (foreign / "runs" / "wandb-run-1").mkdir(parents=True)
        (foreign / "runs" / "wandb-run-1" / "config.yaml").write_text("lr: 1")
        (foreign / "photos").mkdir()
        return foreign, "config.json is missing"
    if kind == "broken":
        for folder in (results / "runs").iterdir():
            (folder / RESULT).write_text("{")
        return results, "move runs/"
    return results, "36 done"


@pytest.mark.parametrize("kind", ["empty", "foreign", "broken", "no place for an index"])
def test_a_folder_gone_bad_has_pages_that_say_what_to_do(
    visitor: Browser, results: Path, tmp_path: Path, kind: str
) -> None:
    folder, output = make_folder(kind, results, tmp_path)
    if kind == "no place for an index":
        shutil.rmtree(folder / FOLDER, ignore_errors=True)
        (folder / FOLDER).write_text("a file, so that no folder can be made here")
    with serving(folder) as site:
        visitor.open(site.address + "/")
        visitor.wait(f"document.querySelector('main').innerText.includes({json.dumps(output)})")
        for path in ("/compare", "/?state=failed"):
            visitor.open(site.address + path)
            assert visitor.ask("document.querySelector('main').innerText.length") > 20
            assert visitor.complaints == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_cannot_be_written_is_shown_all_the_same(
    visitor: Browser, results: Path
) -> None:
    results.chmod(0o555)
    try:
        with serving(results) as site:
            visitor.open(site.address + "/")
            visitor.wait("document.querySelector('main').innerText.includes('36 done')")
        assert not (results / FOLDER).exists()
    finally:
        results.chmod(0o755)


@pytest.mark.skipif(find_spec("axe_playwright_python") is None, reason="axe-core is not installed")
@pytest.mark.parametrize("width", [390, 1400])
def test_axe_finds_nothing_serious(visitor: Browser, results: Path, width: int) -> None:
    import axe_playwright_python

    axe = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()
    cells = read_grid(results / "grids" / "placement.json").cells
    fail(results, cells[3].run, "out of memory")
    out = write_report(results).parent
    run = cells[0].run
    visitor.size(width, 900)
    visitor.send("Page.setBypassCSP", enabled=True)
    with serving(results) as site:
        live = ("/", "/?sort=newest", "/compare", f"/run/{run}", f"/run/{run}/doctor", "/theory")
        pages = [site.address + path for path in live]
        pages += [(out / name).as_uri() for name in sorted(os.listdir(out)) if ".html" in name]
        for page in pages:
            visitor.open(page)
            time.sleep(0.2)
            visitor.ask(axe + "; 0")
            found = visitor.ask(
                "axe.run({resultTypes: ['violations']}).then((r) => r.violations"
                ".filter((v) => ['serious', 'critical'].includes(v.impact))"
                ".map((v) => [v.id, v.nodes[0].html.slice(0, 160)]))"
            )
            assert found == [], page
    visitor.send("Page.setBypassCSP", enabled=False)
