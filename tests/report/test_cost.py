import json

import pytest

from depthpde.records.evidence import gather
from depthpde.records.results import read_results
from depthpde.records.ungrouped import UNGROUPED
from depthpde.report.cost import COSTS, cost_ratio, cost_table
from report import synthesis


def test_costs_are_the_mean_of_paired_ratios(evidence):
    ratio, n = cost_ratio(evidence, "after_embedding", "seconds")
    assert n == 12
    assert ratio == pytest.approx(1.03, abs=0.001)
    assert cost_ratio(evidence, "depthwise conv", "parameters") == (pytest.approx(1.0), 12)


def test_the_table_shows_the_baseline_and_multiples_of_it(evidence):
    table = cost_table(evidence)
    assert table.heads == ("", *COSTS.values())
    assert [each.text for each in table.rows[0]] == [
        "baseline", "30 k", "60.2 s", "99.6 k", "400 MB",
    ]  # fmt: skip
    assert table.rows[1][2].text == "×1.030"
    assert len(table.tidy) == 4 * 4


def test_costs_that_are_not_told_are_dots(results):
    for path in results.glob("runs/*/result.json"):
        values = json.loads(path.read_text())
        path.write_text(json.dumps(values | {"seconds": 0, "parameters": "many"}))
    found = read_results(results)
    evidence = gather(found.grids["placement"], found.records)
    assert cost_ratio(evidence, "after_embedding", "seconds") is None
    assert [row[1].text for row in cost_table(evidence).rows] == ["…"] * 5


def test_without_a_baseline_each_variant_shows_its_own_costs(tmp_path):
    synthesis.write_run(tmp_path, "text-mini", "after_ffn", 0)
    found = read_results(tmp_path)
    table = cost_table(gather(found.grids[UNGROUPED], found.records))
    assert table.title == "runs · cost of a whole run"
    (row,) = table.rows
    assert [each.text for each in row[:3]] == ["after ffn", "30 k", "63.6 s"]
    assert row[1].title == "mean of 1 run"
