from __future__ import annotations

import re
from pathlib import Path

import pytest

from depthpde.records.index.store import FOLDER
from depthpde.web.dashboard import Dashboard
from web.conftest import Site, serving

SCRIPT = '<script src="/static/dash.js" type="module">'
OUTSIDE = [
    "/../../../../etc/passwd",
    "/static/../../../../etc/passwd",
    "/static/..%2f..%2f..%2fetc%2fpasswd",
    "/static/%2e%2e/instrument.py",
    "/static/instrument.py",
    "/static/",
    "/run/../config.json",
    "/run/..",
    "/run/%2e%2e",
    "/run/..%2f..%2fetc",
    "/run/%00",
    "/run/{run}/../../secret",
    "/run/{run}/config.json",
    "/run/{run}/doctor.html",
    "/events/run/..%2f..",
    "/run/" + "a" * 5000,
    "/runs",
    "//etc/passwd",
]


@pytest.mark.parametrize("path", OUTSIDE)
def test_nothing_outside_of_the_pages_can_be_read(site: Site, path: str) -> None:
    run = next((site.results / "runs").iterdir()).name
    status, _, body = site.get(path.replace("{run}", run))
    assert status == 404
    assert "root:" not in body
    assert "no such run" in body


def test_a_doctors_page_in_a_run_folder_is_not_served(results: Path) -> None:
    folder = next((results / "runs").iterdir())
    (folder / "doctor.html").write_text("<script>alert(1)</script>")
    with serving(results) as site:
        assert site.get(f"/run/{folder.name}/doctor.html")[0] == 404
        assert "alert" not in site.get(f"/run/{folder.name}/doctor")[2]


def test_no_page_holds_script_or_style_of_its_own(site: Site) -> None:
    run = next((site.results / "runs").iterdir()).name
    for path in ("/", "/compare", "/theory", f"/run/{run}", f"/run/{run}/doctor", "/nowhere"):
        body = site.get(path)[2]
        assert re.findall(r"<script[^>]*>", body) == [SCRIPT]
        assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", body)


def test_the_page_of_theory_opens_at_any_address_and_asks_the_server_for_no_number(
    site: Site,
) -> None:
    for query in ("", "?scheme=upwind&ratio=0.8", "?ratio=nan&scheme=leapfrog"):
        status, _, body = site.get(f"/theory{query}")
        assert status == 200
        assert 'id="instrument"' in body
    assert site.get("/api/instrument")[0] == 404


def test_a_run_asked_for_before_all_is_read_is_found(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from depthpde.records.index.index import Index

    look = Index.look
    monkeypatch.setattr(Index, "look", lambda self: look(self, patience=0.0))
    runs = sorted(each.name for each in (results / "runs").iterdir())
    with serving(results) as site:
        assert "records to go" in site.get("/")[2]
        for run in (runs[0], runs[-1]):
            assert site.get(f"/run/{run}")[0] == 200
    with serving(results) as site:
        assert "6 paired seeds" in site.get("/compare")[2]


def test_a_foreign_folder_says_what_a_results_folder_is(tmp_path: Path) -> None:
    (tmp_path / "runs" / "holiday").mkdir(parents=True)
    with serving(tmp_path) as site:
        body = site.get("/")[2]
        assert "runs/ID/config.json" in body
        assert "depthpde dash FOLDER" in body
        assert "✗ not a record" in body


def test_a_corrupt_record_is_listed_and_the_rest_is_shown(results: Path) -> None:
    folder = sorted((results / "runs").iterdir())[0]
    (folder / "result.json").write_text('{"format": 1, "sta')
    with serving(results) as site:
        body = site.get("/")[2]
        assert "✗ not a record" in body
        assert folder.name in body
        assert "35 done" in body
        assert site.get(f"/run/{folder.name}")[0] == 404


def test_two_dashboards_can_show_one_folder(results: Path) -> None:
    with serving(results) as first, serving(results) as second:
        assert first.port != second.port
        assert first.get("/compare")[2] == second.get("/compare")[2]


def test_no_request_changes_the_folder(results: Path) -> None:
    def state() -> dict[str, tuple[int, int]]:
        every = [e for e in sorted(results.rglob("*")) if FOLDER not in e.parts]  # a cache
        return {str(e): (e.stat().st_mtime_ns, e.stat().st_size) for e in every}

    before = state()
    run = next((results / "runs").iterdir()).name
    with serving(results) as site:
        for path in ("/", "/compare", "/theory", f"/run/{run}", f"/run/{run}/doctor"):
            assert site.get(path)[0] == 200
        for method in ("POST", "PUT", "DELETE"):
            site.get(f"/run/{run}", method=method)
    assert state() == before


def test_an_address_without_a_page_says_so(site: Site) -> None:
    status, _, body = site.get("/nowhere")
    assert status == 404
    assert "There is no such page" in body
    assert "Back to the board" in body


def test_a_page_that_fails_says_whose_fault_it_is_and_tells_no_secrets(
    results: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(self: Dashboard) -> None:
        raise RuntimeError("a secret path")

    monkeypatch.setattr(Dashboard, "whole", broken)
    with serving(results) as site:
        status, headers, body = site.get("/compare")
    assert status == 500
    assert "could not be drawn (RuntimeError)" in body
    assert "secret" not in body
    assert "content-security-policy" in headers
    assert "a secret path" in caplog.text
