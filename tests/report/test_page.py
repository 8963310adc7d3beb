"""The page as a file and in a real browser."""

import gc
import html
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from depthpde.pages.resources import read_text
from depthpde.pages.style import style_sheet
from depthpde.records.evidence import over_all
from depthpde.records.record import Grid, read_grid, write_grid
from depthpde.report.page import PAGE, make_report, write_report
from recipes import read_recipes, run_recipe
from report import synthesis

VOID = {"meta", "br", "hr", "img", "link", "input"}


class Reader(HTMLParser):
    """Collects ids, links and tags, and checks that every tag is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value)
            if name == "href":
                self.links.append(value)
            assert name not in ("style", "onclick", "src"), (tag, name)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_lines_by_depth_are_explained_where_no_learning_curve_stands_above(results, tmp_path):
    """They were *as above*, with nothing above, where runs had been validated once."""
    write_report(results, tmp_path / "all")
    assert "probe; lines as above." in (tmp_path / "all" / "grid-placement.html").read_text()
    for path in results.glob("runs/*/metrics.jsonl"):
        *_, last = (line for line in path.read_text().splitlines() if "validation" in line)
        path.write_text(last + "\n")
    write_report(results, tmp_path / "once")
    text = (tmp_path / "once" / "grid-placement.html").read_text()
    assert "<h3>Learning</h3>" not in text
    assert "lines as above" not in text
    assert "Dashed grey is the baseline" in text.partition("<h3>Dynamics by depth</h3>")[2]


@pytest.fixture(scope="module")
def page(shared_results, tmp_path_factory) -> str:
    out = tmp_path_factory.mktemp("out")
    return write_report(shared_results, out, single_file=True).read_text()


def test_the_page_is_whole_and_every_link_leads_somewhere(page):
    read = Reader(page)
    assert read.open == []
    assert len(read.ids) == len(set(read.ids))
    assert {link for link in read.links if not link.startswith("#")} == set()
    assert {link[1:] for link in read.links} <= set(read.ids)
    assert len(read.links) > 50


def test_the_page_needs_no_script_and_no_network(page):
    assert "script" not in Reader(page).tags
    assert not re.search(r"(src|href)=\"(https?:)?//", page)
    assert "default-src 'none'; style-src 'sha256-" in html.unescape(page)


def test_the_question_and_the_verdict_stand_before_the_figures(page):
    question = page.index("<h1>Where does diffusion help")
    assert question < page.index("After embedding helps most:") < page.index("<svg")


def test_the_page_has_every_part(page):
    for part in (
        "The seven positions in a Transformer", "mean difference over tasks", "points by task",
        "validation accuracy by update", "learned ratios", "what each frequency keeps",
        "energy by band", "cosine to the input by depth", "Dirichlet energy by depth",
        "cost of a whole run", "smaller than claimed", "80 % power from",
        "Commutator and effect", "root operator 33.3",
    ):  # fmt: skip
        assert part in page, part


def test_every_mean_of_the_page_is_that_of_the_records(page, evidence):
    for found in over_all(evidence).values():
        ends = found.interval
        output = f"{found.mean:+.1f} [{ends.low:+.1f}, {ends.high:+.1f}]".replace("-", "−")
        assert output.replace("+0.0", "±0.0").replace("−0.0", "±0.0") in page


def test_every_run_is_listed_with_its_name_and_its_environment(page, evidence):
    for runs in evidence.runs.values():
        for run in runs.values():
            assert f"<code>{run.id}</code>" in page
    assert "commit 0123456789ab; depthpde 0.1" in page


def test_the_same_records_give_the_same_bytes_wherever_they_lie(shared_results, results, tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    write_report(shared_results, one)
    write_report([results], two)
    files = sorted(each.relative_to(one) for each in one.rglob("*") if each.is_file())
    assert len(files) > 20
    assert files == sorted(each.relative_to(two) for each in two.rglob("*") if each.is_file())
    for each in files:
        assert (one / each).read_bytes() == (two / each).read_bytes(), each


@pytest.mark.parametrize("collects", [True, False])
def test_the_collector_is_left_as_it_was_even_after_an_error(collects, tmp_path):
    try:
        if not collects:
            gc.disable()
        with pytest.raises(FileNotFoundError):
            write_report(tmp_path / "nowhere")
        assert gc.isenabled() is collects
    finally:
        gc.enable()


def test_inside_the_results_the_page_leads_to_each_record(results):
    page = write_report(results, single_file=True)
    assert page == results / "report" / PAGE
    links = [each for each in Reader(page.read_text()).links if not each.startswith("#")]
    assert len(links) == 60
    assert all((page.parent / each).is_file() for each in links)


def test_broken_records_are_listed_and_the_rest_is_shown(results):
    runs = sorted((results / "runs").iterdir())
    (runs[0] / "result.json").write_text("{")
    (runs[1] / "config.json").write_text(json.dumps({"format": 2}))
    report = make_report(results)
    page = report.page.read_text()
    assert len(report.results.broken) == 2
    assert f"<code>runs/{runs[0].name}</code>: runs/{runs[0].name}/result.json must be JSON" in page
    assert "must be of format 1, got 2" in page
    assert str(results) not in page
    assert "58 of 60 runs finished" in page
    grid = report.page.with_name("grid-placement.html").read_text()
    assert "2 of 60 runs have no result yet" in grid


def test_predictions_that_were_cut_break_their_record_though_the_index_knew_it(results):
    run = min((results / "runs").iterdir())
    test = json.loads((run / "result.json").read_text())["test"]
    assert "checksums" not in (run / "result.json").read_text()  # an old one: no size is written
    (run / "predictions.u8").write_bytes(bytes(test["targets"]))
    assert make_report(results).results.broken == ()
    (run / "predictions.u8").write_bytes(bytes(test["targets"] - 1))
    (broken,) = make_report(results).results.broken
    assert broken.path == Path("runs") / run.name
    assert f"must hold {test['targets']} predictions" in broken.reason


def test_curves_and_probes_that_cannot_be_read_are_listed(results):
    runs = sorted(each.parent for each in results.glob("runs/*/probe.json"))
    probe = runs[0] / "probe.json"
    course, alive = (each / "metrics.jsonl" for each in runs[1:3])
    probe.write_text("{half")
    course.write_text("{half\n" + course.read_text())
    alive.write_text(alive.read_text() + '{"kind": "validation", "upd')
    report = make_report(results)
    printed = {each.path: each.reason for each in report.results.broken}
    assert set(printed) == {each.relative_to(results) for each in (probe, course)}
    assert printed[course.relative_to(results)].startswith(
        f"runs/{course.parent.name}/metrics.jsonl,"
    )
    page = report.page.read_text()
    assert f"<code>runs/{probe.parent.name}/probe.json</code>: a probe must be JSON" in page
    assert "60 of 60 runs finished" in page
    assert "2 unread" in page
    assert str(results) not in page


def test_a_folder_where_nothing_can_be_read_still_gives_a_page(tmp_path):
    (tmp_path / "runs" / "0123").mkdir(parents=True)
    report = make_report(tmp_path)
    assert report.grid_sections == ()
    assert "No run has been read" in report.page.read_text()


def test_the_python_of_the_documentation_runs(shared_results, tmp_path, capsys):
    (recipe,) = read_recipes("docs/report.md")
    (tmp_path / "results").symlink_to(shared_results)
    run_recipe(recipe, tmp_path)
    assert (tmp_path / "out" / "report" / PAGE).is_file()
    assert "after embedding" in capsys.readouterr().out


HOSTILE = "<script>document.title='owned'</script>"


def make_hostile(folder: Path) -> Path:
    """Write results in which every name that a record chooses is markup."""
    grid = synthesis.write_placement(
        folder, tasks=["text-mini"], variants=["baseline", "after_ffn"], seeds=2
    )
    cells = tuple(
        type(cell)(
            HOSTILE, cell.variant if cell.variant == "baseline" else HOSTILE, cell.seed, cell.run
        )
        for cell in grid.cells
    )
    write_grid(folder, Grid("placement", HOSTILE, "baseline", cells, {HOSTILE: {"words": HOSTILE}}))
    for path in folder.glob("runs/*/result.json"):
        values = json.loads(path.read_text())
        values |= {"trivial": {HOSTILE: 50.0}, "data": {"manifest_sha256": HOSTILE}}
        path.write_text(json.dumps(values))
    for path in folder.glob("runs/*/environment.json"):
        path.write_text(json.dumps({"commit": HOSTILE, "versions": {HOSTILE: HOSTILE}}))
    synthesis.write_findings(folder, "claims")
    printed = json.loads((folder / "findings" / "claims.json").read_text())
    printed |= {"question": HOSTILE, "notes": [HOSTILE], "tables": {HOSTILE: [{HOSTILE: HOSTILE}]}}
    (folder / "findings" / "claims.json").write_text(json.dumps(printed))
    (folder / "runs" / "<b>").mkdir()
    return folder


def test_names_from_records_are_text_everywhere(tmp_path):
    assert read_grid(write_grid(tmp_path, Grid("g", HOSTILE, "b", (), {}))).question == HOSTILE
    out = tmp_path / "out"
    page = write_report(make_hostile(tmp_path / "results"), out, single_file=True).read_text()
    read = Reader(page)
    assert read.open == []
    assert "script" not in read.tags
    assert "b" not in read.tags
    assert html.escape(HOSTILE) in page
    for each in (out / "figures").iterdir():
        assert "<script" not in each.read_text()


def test_a_browser_opens_the_page_without_a_word_and_runs_no_name(browser, tmp_path):
    page = write_report(make_hostile(tmp_path / "results"), tmp_path / "out", single_file=True)
    browser.open(page.as_uri())
    assert browser.complaints == []
    assert browser.ask("document.title") == "placement · depthpde report"
    assert browser.ask("document.querySelectorAll('svg').length") > 3


@pytest.mark.parametrize("width", [390, 1280, 1400])
def test_the_page_is_no_wider_than_its_window(browser, shared_results, tmp_path, width):
    page = write_report(shared_results, tmp_path / "out", single_file=True)
    browser.size(width, 900)
    for scheme in ("light", "dark"):
        browser.paint(scheme)
        browser.open(page.as_uri())
        assert browser.ask("document.documentElement.scrollWidth") == width


def contents(sections: int) -> str:
    """Return the contents of a page with so many sections, as the template writes them."""
    links = "".join(f'<li><a href="#{k}">a-grid-with-a-name-{k}</a></li>' for k in range(sections))
    sheet = style_sheet(read_text("depthpde.report", "report.css"))
    return (
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{sheet}</style><header><h1>q</h1></header>"
        f'<nav id="contents" class="contents"><ul>{links}</ul></nav>'
        '<main><div style="height: 9000px"></div></main>'
        '<footer></footer><a class="back" href="#contents">up</a>'
    )


@pytest.mark.parametrize("width", [390, 1400])
def test_forty_sections_wrap_and_stay_within_reach(browser, tmp_path, width):
    page = tmp_path / "page.html"
    page.write_text(contents(40), encoding="utf-8")
    browser.size(width, 900)
    browser.open(page.as_uri())
    assert browser.ask("document.documentElement.scrollWidth") == width
    top = "document.getElementById('contents').getBoundingClientRect().top"
    before = browser.ask(top)
    browser.ask("window.scrollTo(0, 5000)")
    if width >= 1200:
        assert browser.ask(top) == pytest.approx(before, abs=30), "beside the page, it stays"
        assert browser.ask("document.getElementById('contents').clientHeight") <= 900
        assert browser.ask("getComputedStyle(document.querySelector('.back')).display") == "none"
    else:
        assert browser.ask(top) < 0
        back = "document.querySelector('.back').getBoundingClientRect()"
        assert 0 < browser.ask(f"{back}.top") < 900, "a link leads back to it from anywhere"


def test_paper_has_no_contents_and_light_colours(browser, shared_results, tmp_path):
    page = write_report(shared_results, tmp_path / "out")
    browser.open(page.as_uri())
    dark = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.send("Emulation.setEmulatedMedia", media="print", features=dark)
    shown = "getComputedStyle(document.querySelector('{}')).{}"
    try:
        assert browser.ask(shown.format("nav.contents", "display")) == "none"
        assert browser.ask(shown.format("body", "backgroundColor")) == "rgb(255, 255, 255)"
        assert browser.ask(shown.format("body", "display")) == "block"
    finally:
        browser.send("Emulation.setEmulatedMedia", media="", features=[])


def test_the_contents_name_every_chapter_once(page):
    listed = re.search(r'<nav id="contents".*?</nav>', page, flags=re.S)[0]
    assert re.findall(r'href="#([\w-]+)"', listed) == ["claims", "grid--placement", "runs"]


def test_runs_without_a_pair_have_their_curves_drawn(tmp_path):
    synthesis.write_placement(tmp_path, tasks=["text-mini"], variants=["after_ffn"], seeds=2)
    drawn = make_report(tmp_path).grid_sections[0].curves["text-mini"]
    assert "after ffn" in drawn
    assert "line-ours" in drawn
