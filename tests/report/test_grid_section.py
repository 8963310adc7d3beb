"""One grid's part of a report: its figures, its tables, and who leads them."""

import re
import xml.etree.ElementTree as ET

import pytest

from depthpde.records.evidence import over_all
from depthpde.report import grid_section
from depthpde.report.cost import cost_table
from depthpde.report.grid_section import write_grid_section
from depthpde.report.tables import paired_table


@pytest.fixture(scope="module")
def section(evidence):
    return write_grid_section(evidence)


def test_a_chapter_of_one_task_draws_no_figure_by_task(evidence, section):
    one = write_grid_section(evidence.select(tasks=["text-mini"]))
    assert set(one.figures) == {"diagram", "forest"}
    assert set(section.figures) == {"diagram", "forest", "forest-by-task", "heat-map"}


def test_a_hint_names_so_many_runs_and_counts_the_rest(evidence, section, monkeypatch):
    drawn, few = section.figures["heat-map"], r"; runs( [0-9a-f]{16})+</title>"
    seeds = len(evidence.pairs("text-mini", evidence.others[0]))
    assert re.search(few, drawn)
    assert " more</title>" not in drawn
    monkeypatch.setattr(grid_section, "MOST_NAMED", 1)
    drawn = write_grid_section(evidence).figures["heat-map"]
    assert re.search(rf"; runs [0-9a-f]{{16}} and {seeds - 1} more</title>", drawn)


def test_a_chapter_leads_with_the_best_the_worst_and_the_best_control(section):
    drawn = section.curves["text-mini"]
    for name in ("baseline", "after embedding", "after attention", "depthwise conv"):
        assert f">{name}</text>" in drawn
    assert ">all seven</text>" not in drawn


@pytest.mark.parametrize("measure", ["drift.cosine", "energy.dirichlet"])
def test_depth_is_marked_at_whole_blocks(section, measure):
    drawn = section.depth[measure]
    assert all(f">{block}</text>" in drawn for block in range(7))


def test_every_variant_but_the_baseline_has_an_article_and_a_row(section, evidence):
    assert [each.variant for each in section.variant_sections] == list(evidence.others)
    labels = ET.fromstring(section.figures["forest"]).get("aria-label")
    for variant in evidence.others:
        assert variant.replace("_", " ") in labels


def test_the_forest_shows_the_means_of_the_evidence(section, evidence):
    label = ET.fromstring(section.figures["forest"]).get("aria-label")
    for found in over_all(evidence).values():
        assert f"{found.mean:+.1f} [".replace("-", "−").replace("+0.0", "±0.0") in label


def test_the_diagram_leads_to_the_articles(section):
    anchors = {each.anchor for each in section.variant_sections}
    links = set(re.findall(r'href="#([^"]+)"', section.figures["diagram"]))
    assert links
    assert links <= anchors


def test_tables_are_those_of_the_evidence(section, evidence):
    assert section.table == paired_table(evidence)
    assert section.cost == cost_table(evidence)


def test_every_figure_is_well_formed_and_says_itself(section):
    drawn = [*section.figures.values(), *section.curves.values(), *section.depth.values()]
    assert len(drawn) > 6
    for each in drawn:
        assert len(ET.fromstring(each).get("aria-label")) > 20


def test_measures_by_depth_show_the_probed_variants_alone(section):
    label = ET.fromstring(section.depth["drift.cosine"]).get("aria-label")
    assert "baseline: from" in label
    assert "after embedding: from" in label
    assert "depthwise conv" not in label
