from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from depthpde.records.findings import Findings
from depthpde.records.protocols.sealing import seal
from depthpde.report.page import write_report
from depthpde.report.site import ROOM
from records.protocols.test_sealing import PROTOCOL
from report import synthesis
from report.test_page import HOSTILE, Reader, make_hostile

LIMIT = 500_000


@pytest.fixture(scope="module")
def folder(shared_results, tmp_path_factory) -> Path:
    return write_report(shared_results, tmp_path_factory.mktemp("site")).parent


def pages_of(folder: Path) -> dict[str, str]:
    return {each.name: each.read_text(encoding="utf-8") for each in folder.glob("*.html")}


def test_there_is_a_start_page_one_of_claims_and_three_of_every_grid(folder):
    assert set(pages_of(folder)) == {
        "report.html", "claims.html", "grid-placement.html", "grid-placement-variants.html",
        "runs-placement.html",
    }  # fmt: skip


def test_every_page_is_whole_and_every_link_leads_somewhere(folder):
    pages = {name: Reader(text) for name, text in pages_of(folder).items()}
    cells = set(re.findall(r'"(cell--[^"]+)":\[', pages_of(folder)["runs-placement.html"]))
    for name, read in pages.items():
        assert read.open == []
        assert len(read.ids) == len(set(read.ids))
        for link in read.links:
            page, _, at = link.partition("#")
            if page.startswith("tables/"):
                assert (folder / page).is_file()
            elif at.startswith("cell--"):
                assert (page, at) == ("runs-placement.html", at)
                assert at in cells
            else:
                assert not at or at in pages[page or name].ids, (name, link)


def test_every_claim_leads_to_its_figures_its_runs_and_what_was_laid_down(results):
    seal(results, replace(PROTOCOL, name="placement"))
    read = Reader((write_report(results).parent / "claims.html").read_text(encoding="utf-8"))
    wanted = {"grid-placement.html", "runs-placement.html", "../protocols/placement.json"}
    assert wanted <= set(read.links)
    for link in wanted:
        assert (results / "report" / link).is_file()


def test_the_page_of_a_grid_leads_to_its_claims_where_it_has_any(results):
    first = json.loads((results / "grids" / "placement.json").read_text())
    (results / "grids" / "second.json").write_text(json.dumps(first | {"name": "second"}))
    pages = pages_of(write_report(results).parent)
    assert 'href="claims.html#claims--placement"' in pages["grid-placement.html"]
    assert "claims--placement" in Reader(pages["claims.html"]).ids
    assert "#claims--" not in pages["grid-second.html"]


def test_a_table_shows_the_columns_that_its_first_row_lacks(results):
    rows = [{"variant": "a", "rate 0.1": 1.5}, {"variant": "b", "rate 0.2": None, "lost": "all 5"}]
    found = Findings(name="mine", question="?", scale="own", claims=(), tables={"beside": rows})
    found.write(results)
    page = pages_of(write_report(results).parent)["claims.html"]
    (table,) = re.findall(r"<caption>beside</caption>(.*?)</table>", page, re.S)
    heads = ["variant", "rate 0.1", "rate 0.2", "lost"]
    assert re.findall(r"<th[^>]*>([^<]*)</th>", table) == heads
    cells = re.findall(r"<td>([^<]*)</td>", table)
    assert cells == ["a", "1.5", "–", "–", "b", "–", "–", "all 5"]


def test_every_page_is_below_half_a_megabyte(folder):
    assert max(len(each.encode()) for each in pages_of(folder).values()) <= LIMIT


def test_articles_that_do_not_fit_go_to_a_page_of_their_own(shared_results, tmp_path, monkeypatch):
    monkeypatch.setattr("depthpde.report.site.ROOM", ROOM // 10)
    folder = write_report(shared_results, tmp_path).parent
    several = sorted(folder.glob("grid-placement-variants*.html"))
    assert len(several) > 1
    found = re.findall(r'<article id="([^"]+)"', "".join(each.read_text() for each in several))
    assert len(found) == len(set(found)) == 4
    start = (folder / "report.html").read_text()
    for page, at in re.findall(r'href="(grid-[^"#]+)#(variant--[^"]+)"', start):
        assert f'id="{at}"' in (folder / page).read_text()


def test_the_first_screen_has_verdict_map_figure_and_limits(folder, browser):
    browser.size(1400, 900)
    browser.open((folder / "report.html").as_uri())
    for what in (".verdict li", "svg.figure", "#limits", ".limits li"):
        top = browser.ask(f"document.querySelector('{what}').getBoundingClientRect().bottom")
        assert top < 900, what
    assert browser.ask("document.querySelectorAll('.first svg.figure').length") == 2


def test_pages_of_an_earlier_report_go_and_those_of_others_stay(results, tmp_path):
    first = json.loads((results / "grids" / "placement.json").read_text())
    (results / "grids" / "second.json").write_text(json.dumps(first | {"name": "second"}))
    write_report(results, tmp_path)
    (tmp_path / "grid-of-mine.html").write_text("mine")
    assert (tmp_path / "grid-second.html").is_file()
    (results / "grids" / "second.json").unlink()
    write_report(results, tmp_path)
    assert not (tmp_path / "grid-second.html").exists()
    assert (tmp_path / "grid-of-mine.html").read_text() == "mine"
    write_report(results, tmp_path, single_file=True)
    assert {each.name for each in tmp_path.glob("*.html")} == {"report.html", "grid-of-mine.html"}


def test_names_from_records_are_text_on_every_page(tmp_path, browser):
    folder = write_report(make_hostile(tmp_path / "results"), tmp_path / "out").parent
    for name, text in pages_of(folder).items():
        assert "<script>document" not in text, name
        browser.open((folder / name).as_uri())
        assert browser.ask("document.title") != "owned", name
    assert html.escape(HOSTILE) in pages_of(folder)["report.html"]
    browser.open((folder / "runs-placement.html").as_uri())
    assert browser.ask("document.querySelector('tbody td').textContent") == HOSTILE
    assert browser.complaints == []


def rows(browser) -> list[list[str]]:
    return browser.ask(
        "[...document.querySelectorAll('#runs tbody tr')].map((row) => "
        "[...row.cells].map((cell) => cell.textContent))"
    )


def choose(browser, name: str, value: str) -> None:
    browser.ask(
        f"(() => {{ const it = document.querySelector('#runs form').elements['{name}'];"
        f"it.value = '{value}'; it.dispatchEvent(new Event('input', {{bubbles: true}})); }})()"
    )


def test_runs_are_filtered_sorted_and_shared_by_their_address(folder, browser):
    browser.size(1400, 900)
    browser.open((folder / "runs-placement.html").as_uri())
    assert len(rows(browser)) == 60
    choose(browser, "task", "listops-mini")
    choose(browser, "q", "embedding")
    kept = rows(browser)
    assert len(kept) == 6
    assert all(row[:2] == ["listops-mini", "after embedding"] for row in kept)
    for direction in (1, -1):
        browser.ask("document.querySelector('th[data-key=accuracy] button').click()")
        reached = [float(row[4]) for row in rows(browser)]
        assert reached == sorted(reached)[::direction]
    address = browser.ask("location.href")
    browser.open("about:blank")
    browser.open(address)
    assert [float(row[4]) for row in rows(browser)] == reached
    assert browser.ask("document.querySelector('th[data-key=accuracy]').ariaSort") == "descending"
    choose(browser, "q", "nothing has this name")
    assert rows(browser) == []
    assert "0 runs, 60 in all" in browser.ask("document.querySelector('.count').textContent")


def test_a_link_to_a_cell_or_a_run_shows_its_runs_alone(folder, browser):
    page = (folder / "grid-placement.html").read_text()
    link = re.search(
        r'runs-placement.html#cell--text-mini[^"]*|runs-placement.html#cell--[^"]+', page
    )
    assert link is not None
    browser.open(f"{folder.as_uri()}/{link[0]}")
    assert len(rows(browser)) == 6
    run = rows(browser)[0][5]
    browser.open("about:blank")
    browser.open(f"{folder.as_uri()}/runs-placement.html#run-{run}")
    assert [row[5] for row in rows(browser)] == [run]


def test_many_runs_are_shown_a_hundred_at_a_time(tmp_path, browser):
    synthesis.write_placement(
        tmp_path, tasks=["text-mini"], variants=["baseline", "rotary"], seeds=75
    )
    page = write_report(tmp_path).with_name("runs-placement.html")
    assert page.read_text().count("<tr>") == 101, "without script the first hundred are there"
    browser.open(page.as_uri())
    assert len(rows(browser)) == 100
    browser.ask("document.querySelectorAll('.turn button')[1].click()")
    assert len(rows(browser)) == 50
    assert browser.ask("document.querySelector('.count').textContent") == "101–150 of 150 runs"
    assert "page=2" in browser.ask("location.hash")
    assert browser.ask("document.querySelectorAll('.turn button')[1].disabled")


@pytest.mark.parametrize("width", [390, 1400])
def test_no_page_is_wider_than_its_window(folder, browser, width):
    browser.size(width, 900)
    for name in pages_of(folder):
        browser.open((folder / name).as_uri())
        assert browser.ask("document.documentElement.scrollWidth") == width, name
