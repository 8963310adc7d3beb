"""The level of a task is where its baseline has lost half of what it knows; all are shown."""

from __future__ import annotations

from dataclasses import replace

import pytest

from depthpde.papers.confirmatory.readings import (
    TITLES,
    corrupted_scores,
    gain_table,
    half_levels,
    reading_scores,
    reading_tables,
)
from papers.invented import evidence

CURVES = {"baseline": {"0.01": 48.0, "0.1": 29.0, "0.3": 11.0}, "wide": {"0.01": 50.0, "0.1": 41.0}}


def under_noise(curves=CURVES):
    found = evidence({"wide": 2.0}, seeds=6)
    runs = {
        cell: {
            seed: replace(
                run,
                result=dict(run.result)
                | {"corrupted": curves[cell[1]], "trivial": {"majority": 10.0}},
            )
            for seed, run in each.items()
        }
        for cell, each in found.runs.items()
    }
    return replace(found, runs=runs)


def breaking(found, cell, seeds, *, kept=True, **result):
    """Return the evidence with some runs of a cell diverged, their weights kept or not."""
    lost = {"status": "diverged"} if kept else {"status": "diverged", "test": None, "corrupted": {}}
    runs = {
        seed: replace(run, result=dict(run.result) | lost | result) if seed in seeds else run
        for seed, run in found.runs[cell].items()
    }
    return replace(found, runs={**found.runs, cell: runs})


def test_half_of_the_knowledge_above_chance_sets_the_level():
    # clean is about 50 and chance 10: half is about 30, first reached at 0.1
    assert half_levels(under_noise()) == {"text-mini": "0.1", "image-mini": "0.1"}
    flat = CURVES | {"baseline": {"0.01": 49.0, "0.1": 48.0}}
    assert set(half_levels(under_noise(flat)).values()) == {"0.1"}, "else the highest"


def test_scores_are_those_of_every_run_at_that_level():
    found = corrupted_scores(under_noise())
    assert found["baseline"]["text-mini"] == dict.fromkeys(range(6), 29.0)
    assert found["wide"]["image-mini"] == dict.fromkeys(range(6), 41.0)


@pytest.mark.parametrize("kept", [True, False])
def test_a_run_that_broke_counts_as_the_largest_class_in_every_reading(kept):
    cell = ("text-mini", "wide")
    found = breaking(under_noise(), cell, [0, 1], kept=kept)
    wanted = {0: 10.0, 1: 10.0} | dict.fromkeys(range(2, 6), 41.0)
    assert corrupted_scores(found)["wide"]["text-mini"] == wanted
    assert reading_scores(found, "corrupted", ("0.1",))["wide"]["text-mini"] == wanted
    (row,) = (
        row
        for row in reading_tables(found)[TITLES["corrupted"]]
        if (row["variant"], row["task"]) == ("wide", "Text")
    )
    assert row["level: accuracy"] == "0.01: 36.7 · 0.1: 30.7"
    finished = breaking(under_noise(), cell, [0, 1], kept=kept, status="done", test=None)
    assert corrupted_scores(finished)["wide"]["text-mini"] == wanted


@pytest.mark.parametrize("kept", [True, False])
def test_a_baseline_that_broke_leaves_its_task_its_level(kept):
    one = breaking(under_noise(), ("text-mini", "baseline"), [0], kept=kept)
    assert half_levels(one) == {"text-mini": "0.1", "image-mini": "0.1"}
    # where all broke, the baseline knows nothing above chance: the lowest level takes half of it
    none = breaking(under_noise(), ("text-mini", "baseline"), range(6), kept=kept)
    assert half_levels(none) == {"text-mini": "0.01", "image-mini": "0.1"}
    assert corrupted_scores(none)["baseline"]["text-mini"] == dict.fromkeys(range(6), 10.0)


def test_a_task_that_was_not_read_in_that_way_has_no_scores():
    found = breaking(under_noise(), ("text-mini", "wide"), [0], kept=False)
    assert reading_scores(found, "windowed", ("8",)) == {}


def test_runs_that_were_read_clean_alone_have_no_scores():
    assert corrupted_scores(evidence({"wide": 2.0})) == {}
    part = CURVES | {"wide": {"0.01": 50.0}}
    assert "wide" not in corrupted_scores(under_noise(part))


def test_every_level_of_every_reading_is_shown_beside_what_was_reached_as_trained():
    found = reading_tables(under_noise())
    assert list(found) == [TITLES["corrupted"]]
    rows = {(row["variant"], row["task"]): row for row in found[TITLES["corrupted"]]}
    assert len(rows) == 4
    wide = rows["wide", "Text"]
    assert wide["level: accuracy"] == "0.01: 50.0 · 0.1: 41.0"
    assert wide["n"] == "6"
    assert float(wide["as trained"]) > float(rows["baseline", "Text"]["as trained"])


def test_levels_stand_by_their_numbers_and_those_that_a_run_lacks_are_left_out():
    found = evidence({"wide": 2.0}, seeds=2)
    read = [{"text/512": 55.0, "text/2048": 51.0, "text/1024": 53.0}, {"text/512": 57.0}]
    cell = ("text-mini", "baseline")
    runs = {
        seed: replace(run, result=dict(run.result) | {"transferred": read[seed]})
        for seed, run in found.runs[cell].items()
    }
    (row,) = reading_tables(replace(found, runs={cell: runs}))[TITLES["transferred"]]
    assert row["level: accuracy"] == "text/512: 56.0"
    whole = {0: runs[0]}
    (row,) = reading_tables(replace(found, runs={cell: whole}))[TITLES["transferred"]]
    assert row["level: accuracy"] == "text/512: 55.0 · text/1024: 53.0 · text/2048: 51.0"


def test_a_gain_is_split_by_how_the_test_split_is_read():
    """Windows 2 and 8 leave 1 and 4 of the points that wide gains; Pathfinder is in no mean."""
    found = evidence({"wide": 5.0}, seeds=6, tasks=("text-mini", "pathfinder-mini"))
    left = {"baseline": {"2": 20.0, "8": 30.0}, "wide": {"2": 21.0, "8": 34.0}}
    runs = {
        (task, variant): {
            seed: replace(
                run,
                result=dict(run.result)
                | {"windowed": left[variant]}
                | ({"windowed": {"2": 0.0, "8": 0.0}} if task == "pathfinder-mini" else {}),
            )
            for seed, run in each.items()
        }
        for (task, variant), each in found.runs.items()
    }
    names = {"windowed": "window of {}", "shuffled": "blocks of {}"}
    rows = gain_table(replace(found, runs=runs), ("wide", "baseline"), names)
    assert [row["test split"] for row in rows] == ["as trained", "window of 8", "window of 2"]
    assert [row["Text"] for row in rows[1:]] == ["+4.0", "+1.0"]
    assert [row["Pathf."] for row in rows[1:]] == ["±0.0", "±0.0"]
    assert rows[1]["mean Δ [95 %]"].startswith("+4.0 [")
    assert gain_table(found, ("no such", "baseline"), names) == []


def test_runs_that_were_read_once_have_no_table():
    assert reading_tables(evidence({"wide": 2.0})) == {}
