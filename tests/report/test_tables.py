import csv
import io
import json
from dataclasses import replace

import numpy as np
import pytest

from depthpde.records.evidence import by_task, escapes, gather, over_all
from depthpde.records.results import read_results
from depthpde.records.ungrouped import UNGROUPED
from depthpde.report.tables import _row, paired_table
from report import synthesis


def read(results):
    found = read_results(results)
    return gather(found.grids["placement"], found.records)


def test_the_text_has_the_layout_of_a_paper_table(evidence):
    lines = paired_table(evidence).text().splitlines()
    assert lines[0] == "placement · listops-mini, text-mini · 6 paired seeds"
    assert lines[1].split() == ["ListOps", "Text", "mean", "Δ", "[95", "%", "CI]", "p", "(Holm)"]
    assert lines[2].startswith("baseline ")
    assert lines[2].count("—") == 2
    assert lines[3].startswith("after embedding ")
    assert lines[3].endswith("*")
    found = over_all(evidence)["after_embedding"]
    assert f"+{found.mean:.1f} [+{found.interval.low:.1f}, +{found.interval.high:.1f}]" in lines[3]
    trivial = next(line for line in lines if line.startswith("trivial: "))
    assert trivial.startswith("trivial: majority 15.5, root operator 33.3 (ListOps)")
    assert trivial.endswith("majority 50.0, bag of bytes 58.0 (Text)"), "the probes' lines too"
    plateau = "escaped the plateau root operator 33.3: "
    (printed,) = [line for line in lines if line.startswith(plateau)]
    assert "no run of baseline" in printed
    assert printed.endswith("(ListOps)")
    cost = "p (Holm) pays for 4 comparisons: the best must reach 0.013"
    assert any(line.startswith(cost) for line in lines)


def test_only_what_p_and_interval_agree_on_is_bold(evidence):
    found = over_all(evidence)
    assert found["after_embedding"].clear
    assert paired_table(evidence).rows[1][-1].strong
    whole = found["after_embedding"]
    wide = replace(whole, interval=replace(whole.interval, low=-2.0))
    assert not wide.clear
    row = _row(evidence, "after_embedding", by_task(evidence), wide, {}, False)
    assert row[-1].text.endswith("*")
    assert not any(each.strong for each in row)


def test_columns_line_up(evidence):
    lines = paired_table(evidence).text().splitlines()[1:7]
    end = lines[0].index("Text") + len("Text")
    assert all(line[end - 1] != " " and line[end : end + 1] == " " for line in lines)


def test_csv_holds_every_number_unrounded_with_its_runs(evidence):
    rows = list(csv.DictReader(io.StringIO(paired_table(evidence).csv())))
    assert len(rows) == 5 * 2 + 4  # the baseline has no difference over all tasks
    found = over_all(evidence)
    for row in rows:
        if row["task"] == "all tasks":
            assert float(row["difference"]) == found[row["variant"]].mean
            assert float(row["p_holm"]) == found[row["variant"]].p_holm
        else:
            assert len(row["runs"].split()) == int(row["n"]) == 6
            reached = evidence.accuracies(row["task"], row["variant"])
            assert float(row["accuracy"]) == pytest.approx(sum(reached.values()) / 6)


def test_plateaus_are_told_one_by_one_up_to_the_first_that_nobody_passed(results):
    for path in results.glob("runs/*/result.json"):
        values = json.loads(path.read_text())
        if len(values["trivial"]) > 1:
            values["trivial"] |= {"root digits": 39.6, "root applied": 51.1}
            path.write_text(json.dumps(values))
    notes = paired_table(read(results)).notes
    assert any(each.startswith("escaped the plateau root operator 33.3: ") for each in notes)
    assert "no run is past root digits 39.6 by three standard errors (ListOps)" in notes
    assert not any("no run" in each and "51.1" in each for each in notes)
    assert not any("plateau majority" in each for each in notes)


def with_lines(results, **lines):
    for path in results.glob("runs/*/result.json"):
        values = json.loads(path.read_text())
        if len(values["trivial"]) > 1:
            path.write_text(json.dumps(values | {"trivial": lines}))
    notes = paired_table(read(results)).notes
    return [each for each in notes if "plateau" in each and "(ListOps)" in each]


def first_that_holds_somebody_back(results):
    """Find, from below, the lowest line that some runs are not past."""
    printed = read(results)
    for line in np.arange(10.0, 60.0, 0.05):
        found = escapes(printed, "listops-mini", float(line))
        if any(each.escaped < each.n for each in found.values()):
            return float(line)
    raise AssertionError


def test_plateaus_that_the_same_runs_escaped_are_told_together(results):
    line = first_that_holds_somebody_back(results)
    (output,) = with_lines(results, first=line, second=line + 1e-6)
    assert output.startswith(f"escaped the plateaus first {line:.1f} and second {line:.1f}: ")


def test_variants_of_which_every_run_escaped_are_not_counted_one_by_one(results):
    (output,) = with_lines(results, line=first_that_holds_somebody_back(results))
    assert output.endswith(": 5 of 6 runs of after attention; every run of the others (ListOps)")


def test_missing_runs_and_too_few_pairs_are_warned_of(tmp_path):
    grid = synthesis.write_placement(
        tmp_path, tasks=["text-mini"], variants=["baseline", "after_ffn", "in_heads"], seeds=3
    )
    (tmp_path / "runs" / grid.cells[-1].run / "result.json").unlink()
    table = paired_table(read(tmp_path))
    assert "2 to 3 paired seeds" in table.title
    assert table.warnings[0] == "1 of 9 runs have no result yet: in heads on text-mini"
    assert table.warnings[1].startswith("2 pairs of runs cannot reach p ≤ 0.05 as the best of 2")
    assert "\nwarning: 1 of 9" in table.text()


def test_a_cell_without_a_pair_shows_dots_and_the_mean_says_how_many_tasks(results):
    for run in read(results).runs["listops-mini", "after_embedding"].values():
        (run.folder / "result.json").unlink()
    row = paired_table(read(results)).rows[1]
    assert row[1].text == "…"
    assert row[3].text.endswith("(1 task)")


def test_a_variant_without_any_run_is_all_dots(results):
    for each in read(results).records("after_embedding"):
        (each.folder / "result.json").unlink()
    assert [each.text for each in paired_table(read(results)).rows[1]][1:] == ["…"] * 4


def test_one_seed_shows_a_difference_and_says_that_it_is_one(tmp_path):
    synthesis.write_placement(
        tmp_path, tasks=["text-mini"], variants=["baseline", "after_ffn"], seeds=1
    )
    table = paired_table(read(tmp_path))
    assert "1 paired seed" in table.title
    assert table.rows[1][2].text.endswith("[no interval]")
    assert "cannot reach p" in table.warnings[0]


def test_a_stage_that_tests_nothing_is_not_warned_of_what_its_pairs_cannot_show(tmp_path):
    synthesis.write_placement(
        tmp_path, tasks=["text-mini"], variants=["baseline", "after_ffn"], seeds=1
    )
    table = paired_table(replace(read(tmp_path), name="placement.tuning"))
    assert table.warnings == ()
    assert any(note.startswith("no p: these runs choose a rate") for note in table.notes)


def loose(results):
    found = read_results(results)
    return gather(found.grids[UNGROUPED], found.records)


def test_a_lone_run_shows_what_it_reached_and_no_run_that_never_was(tmp_path):
    synthesis.write_run(tmp_path, "listops-mini", "after_embedding", 0)
    table = paired_table(loose(tmp_path))
    assert table.title == "runs · listops-mini · 1 seed, nothing to pair with"
    reached = synthesis.accuracy_of("listops-mini", "after_embedding", 0)
    (row,) = table.rows
    assert [each.text for each in row] == ["after embedding", f"{reached:.1f}", "—", "—"]
    assert table.notes[-1].startswith("without a sign: accuracy in percent")
    assert [each["accuracy"] for each in table.tidy] == [reached]


def test_seeds_that_cannot_be_paired_are_not_called_pairs(tmp_path):
    for seed in range(2):
        synthesis.write_run(tmp_path, "text-mini", "baseline", seed)
    table = paired_table(loose(tmp_path))
    assert table.title.endswith("2 seeds, nothing to pair with")
    assert [row[0].text for row in table.rows] == ["baseline"]
    assert not any("without a sign" in each for each in table.notes)


def test_a_variant_before_its_baseline_shows_what_it_reached(tmp_path):
    grid = synthesis.write_placement(
        tmp_path, tasks=["text-mini"], variants=["baseline", "after_ffn"], seeds=1
    )
    (tmp_path / "runs" / grid.cells[0].run / "result.json").unlink()
    table = paired_table(read(tmp_path))
    assert table.title.endswith("0 to 1 seeds, no pair yet")
    reached = f"{synthesis.accuracy_of('text-mini', 'after_ffn', 0):.1f}"
    assert [[each.text for each in row] for row in table.rows] == [
        ["baseline", "…", "—", "—"],
        ["after ffn", reached, "…", "…"],
    ]
