"""What a person sees and does, in a real browser."""

from __future__ import annotations

import html
import itertools
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from depthpde.files import write_json
from depthpde.operators.stability import Scheme
from depthpde.records.evidence import gather
from depthpde.records.record import CONFIG, METRICS, RESULT, STATUS, Cell, Grid, write_grid
from depthpde.records.results import read_results
from depthpde.report.tables import paired_table
from web.browser import Browser
from web.conftest import Site, serving

EVIL = "<script>alert(1)</script>"
PAGES = ("/", "/compare", "/theory", "/run/{run}", "/run/{run}/doctor", "/run/{plain}/doctor")

CONTRAST = """
(() => {
  const parse = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
  const ground = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const found = parse(getComputedStyle(each).backgroundColor);
      if (found.length === 3 || found[3] === 1) return found;
    }
    return [255, 255, 255];
  };
  const worst = [];
  for (const each of document.querySelectorAll("main *, header *, footer *")) {
    const own = [...each.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || !each.getClientRects().length) continue;
    const style = getComputedStyle(each);
    const ink = parse(each instanceof SVGElement ? style.fill : style.color);
    const [a, b] = [light(ink), light(ground(each))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) worst.push([each.outerHTML.slice(0, 120), ratio]);
  }
  return worst;
})()
"""

NAMELESS = """
[...document.querySelectorAll("a, button, input, select, summary, svg, [tabindex='0'], progress")]
  .filter((each) => each.getClientRects().length && !each.closest("[aria-hidden=true]"))
  .filter((each) => !(each.textContent.trim() && !(each instanceof SVGElement)) &&
    !each.getAttribute("aria-label") && !(each.labels && each.labels.length))
  .map((each) => each.outerHTML.slice(0, 160))
"""


@pytest.fixture
def visitor(browser: Browser) -> Iterator[Browser]:
    """Return the browser as a desktop in the light."""
    browser.size(1200, 900)
    browser.paint("light")
    yield browser
    browser.open("about:blank")


@pytest.fixture(scope="module")
def paths(shared_results: Path) -> list[str]:
    """Return one address for each kind of page."""
    cells = read_results(shared_results).grids["placement"].cells
    return [page.format(run=cells[0].run, plain=cells[1].run) for page in PAGES]


def settle(visitor: Browser, path: str) -> None:
    """Wait until a page has drawn what it draws."""
    if path.startswith("/theory"):
        visitor.wait("Number(document.getElementById('instrument').dataset.drawn) > 0")
    elif re.fullmatch(r"/run/\w+", path):
        visitor.wait("document.querySelectorAll('.plot path.curve.ours').length > 1")


def test_every_page_opens_without_a_complaint_in_light_and_dark(
    visitor: Browser, site: Site, paths: list[str]
) -> None:
    for path in paths:
        for scheme in ("light", "dark"):
            visitor.paint(scheme)
            visitor.open(site.address + path)
            settle(visitor, path)
            assert visitor.complaints == [], path
            assert visitor.ask(CONTRAST) == [], f"{path} in {scheme}"
            assert visitor.ask(NAMELESS) == [], path
            assert visitor.ask("document.title").endswith("· depthpde")
            assert visitor.ask("document.querySelectorAll('h1').length") == 1


def test_every_page_fits_a_phone(visitor: Browser, site: Site, paths: list[str]) -> None:
    visitor.size(360, 740)
    for path in paths:
        visitor.open(site.address + path)
        settle(visitor, path)
        assert visitor.ask("document.documentElement.scrollWidth") == 360, path
        assert visitor.complaints == []


def test_the_contrast_test_itself_can_fail(visitor: Browser, site: Site) -> None:
    visitor.open(site.address + "/")
    visitor.ask("document.querySelector('h1').style.color = '#aaaaaa'")
    assert len(visitor.ask(CONTRAST)) == 1


def test_pages_ask_nothing_of_any_other_machine(
    visitor: Browser, site: Site, paths: list[str]
) -> None:
    for path in paths:
        visitor.open(site.address + path)
        settle(visitor, path)
        asked = visitor.ask("performance.getEntriesByType('resource').map((each) => each.name)")
        assert asked
        assert all(each.startswith(site.address) for each in asked)


def test_the_first_press_of_tab_leads_past_the_navigation(visitor: Browser, site: Site) -> None:
    visitor.open(site.address + "/")
    visitor.press("Tab")
    assert visitor.ask("document.activeElement.textContent") == "Skip to the content"
    visitor.press("Enter")
    visitor.wait("location.hash === '#content'")


def test_sliders_redraw_everything_with_the_packages_own_numbers(
    visitor: Browser, site: Site
) -> None:
    visitor.open(site.address + "/theory?scales=1&steps=2&ratio=0.1")
    settle(visitor, "/theory")
    drawn = "[...document.querySelectorAll('.plot')].map((each) => each.innerHTML)"
    before = visitor.ask(drawn)
    assert len(before) == 4
    visitor.ask("document.getElementById('steps').focus()")
    visitor.press("ArrowRight")
    visitor.wait("location.search.includes('steps=3')")
    after = visitor.ask(drawn)
    assert all(old != new for old, new in zip(before, after, strict=True))
    assert visitor.ask("document.getElementById('steps-value').textContent") == "3"
    shown = visitor.ask("document.querySelectorAll('#bands td')[3].textContent")
    kept = kept_of_steps_signal(visitor, ratio=0.1, steps=3)
    assert float(shown.removesuffix(" %")) == pytest.approx(100 * kept, rel=1e-3)


def kept_of_steps_signal(visitor: Browser, *, ratio: float, steps: int) -> float:
    """Return the share of the highest band that the package's operators keep of the signal."""
    import torch

    from depthpde.operators.diffusion.dispatch import diffuse
    from depthpde.operators.energy import band_energies

    made = visitor.ask("import('/static/diffusion.js').then((m) => m.makeSignal('steps'))")
    u = torch.tensor(made, dtype=torch.float64).reshape(1, -1, 1)
    after = diffuse(u, ratio, steps=steps)
    return float(band_energies(after)[0, 3] / band_energies(u)[0, 3])


def test_every_scheme_can_be_chosen_and_instability_is_told_in_words(
    visitor: Browser, site: Site
) -> None:
    visitor.open(site.address + "/theory?ratio=0.6")
    settle(visitor, "/theory")
    assert "✗ unstable" in visitor.ask("document.getElementById('reading').textContent")
    assert visitor.ask("document.querySelectorAll('.plot path.curve.warning').length") == 4
    for scheme in Scheme:
        visitor.ask(
            "(() => { const select = document.getElementById('scheme');"
            f"select.value = '{scheme.value}';"
            "select.dispatchEvent(new Event('input', {bubbles: true})); })()"
        )
        visitor.wait(f"location.search.includes('scheme={scheme.value}')")
    assert visitor.complaints == []


def test_a_chart_is_read_with_the_arrow_keys(visitor: Browser, site: Site) -> None:
    visitor.open(site.address + "/theory?scales=1&signal=spike")
    settle(visitor, "/theory")
    visitor.ask("document.querySelector('#signal-plot svg').focus()")
    visitor.press("End")
    readout = (
        "document.querySelector('#signal-plot').parentElement.querySelector('.readout').textContent"
    )
    assert visitor.ask(readout).startswith("site 127: before 0")


def test_names_of_trivial_lines_that_are_close_do_not_touch(
    visitor: Browser, results: Path
) -> None:
    run = read_results(results).grids["placement"].cells[0].run
    known = json.loads((results / "runs" / run / RESULT).read_text())
    lines = {"majority": 12.2, "root operator": 26.9, "root digits": 28.1, "root applied": 29.3}
    write_json(results / "runs" / run / RESULT, known | {"trivial": lines})
    with serving(results) as site:
        visitor.open(f"{site.address}/run/{run}")
        settle(visitor, f"/run/{run}")
        boxes = visitor.ask(
            "[...document.querySelectorAll('.plot .level-name')].map((each) => "
            "each.getBoundingClientRect()).map((b) => [b.left, b.right, b.top, b.bottom])"
        )
    assert len(boxes) == 4
    for one, other in itertools.combinations(boxes, 2):
        across = one[0] < other[1] and other[0] < one[1]
        along = one[2] < other[3] and other[2] < one[3]
        assert not (across and along)


def test_a_live_runs_curve_grows_and_the_verdicts_come(visitor: Browser, results: Path) -> None:
    folder = sorted((results / "runs").iterdir())[0]
    (folder / RESULT).unlink()
    (folder / METRICS).write_text("")
    write_json(folder / STATUS, {"state": "running", "updates": 9, "heartbeat": time.time()})

    def learn(update: int) -> None:
        point = {"kind": "point", "update": update, "loss": 2.0 - update / 10, "accuracy": 10.0}
        with (folder / METRICS).open("a") as stream:
            stream.write(json.dumps(point) + "\n")

    points = "Number(document.querySelector('#loss-plot path.curve')?.dataset.points)"
    with serving(results) as live:
        visitor.open(f"{live.address}/run/{folder.name}")
        visitor.wait("document.getElementById('live').dataset.state === 'on'")
        for update in (1, 2):
            learn(update)
        visitor.wait(f"{points} === 2")
        learn(3)
        visitor.wait(f"{points} === 3")
        output = {"verdicts": {"rank collapse": "ill"}, "evidence": {"rank collapse": EVIL}}
        (folder / "doctor.jsonl").write_text(json.dumps(output) + "\n")
        visitor.wait("document.getElementById('verdicts').textContent.includes('rank collapse')")
        assert EVIL in visitor.ask("document.getElementById('verdicts').textContent")
        assert visitor.complaints == []
        visitor.open("about:blank")


def test_the_board_changes_by_itself(visitor: Browser, results: Path) -> None:
    folder = sorted((results / "runs").iterdir())[0]
    result = (folder / RESULT).read_text()
    (folder / RESULT).unlink()
    write_json(folder / STATUS, {"state": "running", "update": 3, "heartbeat": time.time()})
    sign = f"document.querySelector('.chips a[href=\"/run/{folder.name}\"]').textContent"
    with serving(results) as live:
        visitor.open(live.address + "/")
        visitor.wait("document.getElementById('live').dataset.state === 'on'")
        assert visitor.ask(sign) == "▶"
        visitor.ask(f"document.querySelector('.chips a[href=\"/run/{folder.name}\"]').focus()")
        visitor.ask("window.untouched = true")
        (folder / RESULT).write_text(result)
        visitor.wait(f"{sign} === '✓'")
        assert visitor.ask("window.untouched") is True, "the page was loaded anew"
        assert visitor.ask("document.activeElement.getAttribute('href')") == f"/run/{folder.name}"
        visitor.open("about:blank")


def shown_table(visitor: Browser) -> list[list[str]]:
    return visitor.ask(
        "[...document.querySelectorAll('#result tbody tr')].map((row) => "
        "[...row.children].map((cell) => cell.textContent))"
    )


def test_the_compare_pages_numbers_are_the_reports(visitor: Browser, site: Site) -> None:
    found = read_results(site.results)
    evidence = gather(found.grids["placement"], found.records)

    def wanted(**part: list[str]) -> list[list[str]]:
        table = paired_table(evidence.select(**part))
        return [[entry.text for entry in row] for row in table.rows]

    visitor.open(site.address + "/compare")
    assert shown_table(visitor) == wanted()
    tasks = ["text-mini"]
    visitor.ask("document.querySelector('input[value=listops-mini]').click()")
    visitor.wait("!document.querySelector('#result caption').textContent.includes('listops')")
    assert shown_table(visitor) == wanted(tasks=tasks)
    visitor.ask("document.querySelector('input[value=\"depthwise conv\"]').click()")
    visitor.wait("document.querySelectorAll('#result tbody tr').length === 2")
    assert shown_table(visitor) == wanted(tasks=tasks, variants=["after_embedding"])
    visitor.open(site.address + "/compare?grid=placement&task=text-mini&variant=after_embedding")
    assert shown_table(visitor) == wanted(tasks=tasks, variants=["after_embedding"])
    assert visitor.complaints == []


def test_a_record_named_like_a_script_does_nothing(visitor: Browser, results: Path) -> None:
    folder = sorted((results / "runs").iterdir())[0]
    output = json.loads((folder / CONFIG).read_text())
    output["label"] = EVIL
    output["config"]["task"] = EVIL
    write_json(folder / CONFIG, output)
    status = {"state": "failed", "error": f"'\"><img src=x onerror=alert(2)>{EVIL}"}
    write_json(folder / STATUS, status)
    (folder / RESULT).unlink()
    broken = results / "runs" / "<img src=x onerror=alert(3)>"
    broken.mkdir()
    write_json(broken / CONFIG, {"format": EVIL})
    cells = (Cell(EVIL, EVIL, 0, folder.name), Cell("a'b\"c", "javascript:alert(4)", 1, EVIL))
    write_grid(results, Grid("evil", EVIL, EVIL, cells, {EVIL: {"words": f'" onmouseover={EVIL}'}}))
    with serving(results) as site:
        for path in ("/", f"/run/{folder.name}", "/compare?grid=evil", "/compare?grid=" + EVIL):
            visitor.open(site.address + path.replace("<", "%3C").replace(">", "%3E"))
            settle(visitor, "")
            assert visitor.complaints == [], path
            assert visitor.ask("document.querySelectorAll('main script, main img').length") == 0
            if EVIL not in path:  # a grid that nobody knows: the newest is shown instead
                assert "alert(" in visitor.ask("document.body.textContent"), path
        visitor.open(site.address + "/")
        assert EVIL in visitor.ask("document.querySelector('main').textContent")
        status, _, body = site.get("/run/%3Cscript%3Ealert(1)%3C%2Fscript%3E")
        assert status == 404
        assert EVIL not in html.unescape(body)
        visitor.open("about:blank")


def test_a_board_of_pending_cells_does_not_scroll_sideways(visitor: Browser, results: Path) -> None:
    """Words that only a screen reader sees stood beyond the edge of a wide table."""
    cells = (("retrieval-mini", "text-mini", "image-mini", "listops-mini", "mnist-mini"), range(30))
    asked = [
        Cell(task, "baseline", seed, f"{seed:016x}") for task, seed in itertools.product(*cells)
    ]
    write_grid(results, Grid("many", "How many?", "baseline", tuple(asked), {"baseline": {}}))
    with serving(results) as site:
        visitor.size(360, 740)
        visitor.open(site.address + "/")
        visitor.wait("document.querySelectorAll('.unseen').length > 0")
        assert visitor.ask("document.documentElement.scrollWidth") == 360
        visitor.open("about:blank")
        visitor.size(1280, 900)


def test_evidence_on_a_phone_is_as_wide_as_the_page(visitor: Browser, results: Path) -> None:
    run = sorted((results / "runs").iterdir())[0]
    output = {"verdicts": {"rank collapse": "ill"}, "evidence": {"rank collapse": "rank 3 " * 20}}
    (run / "doctor.jsonl").write_text(json.dumps(output) + "\n")
    with serving(results) as site:
        visitor.size(390, 844)
        visitor.open(f"{site.address}/run/{run.name}/doctor")
        wide = "document.querySelector('.verdicts td:last-child').getBoundingClientRect().width"
        assert visitor.ask(wide) > 300
        visitor.open("about:blank")
        visitor.size(1280, 900)


def test_an_empty_folder_says_how_to_fill_it_and_shows_what_comes(
    visitor: Browser, shared_results: Path, tmp_path: Path
) -> None:
    with serving(tmp_path) as site:
        visitor.open(site.address + "/compare")
        assert "depthpde sweep" in visitor.ask("document.getElementById('empty').textContent")
        visitor.open(site.address + "/")
        assert "depthpde demo" in visitor.ask("document.getElementById('empty').textContent")
        visitor.wait("document.getElementById('live').dataset.state === 'on'")
        source = sorted((shared_results / "runs").iterdir())[0]
        target = tmp_path / "runs" / source.name
        target.mkdir(parents=True)
        for each in source.iterdir():
            (target / each.name).write_bytes(each.read_bytes())
        visitor.wait("document.querySelectorAll('.chips a').length === 1")
        assert visitor.complaints == []
        visitor.open("about:blank")


def test_a_token_is_asked_for_once(visitor: Browser, shared_results: Path) -> None:
    token = "a-token-of-our-own-0123"
    with serving(shared_results, token) as site:
        visitor.open(f"{site.address}/?token={token}")
        visitor.wait("location.search === ''")
        visitor.open(site.address + "/theory")
        settle(visitor, "/theory")
        assert visitor.complaints == []
        visitor.open("about:blank")
