"""Beside the claims: what layers learned, where diffusion was placed, how far one task decides."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from depthpde.papers.extra_tables import (
    difference_table,
    extra_tables,
    learned_placement,
    learned_values,
    left_out,
)
from depthpde.records.evidence import Evidence, over_all
from depthpde.records.record import Record
from papers import invented

STEM = "encoder.placed.layers.after_embedding.layer"


def one(variant, layer, positions=("after_embedding",), **learned):
    config = {"model": {"positions": list(positions), "layer": layer}}
    result = {"status": "done", "test": {"accuracy": 50.0}} | learned
    return Record(Path("nowhere"), variant, variant, config, {}, {}, result)


def printed(runs):
    return Evidence(
        name="mine",
        question="?",
        baseline="baseline",
        tasks=("text-mini",),
        variants=tuple(dict.fromkeys(["baseline", *runs])),
        words={},
        runs={("text-mini", variant): {0: run} for variant, run in runs.items()},
        missing=(),
    )


def test_a_layer_is_told_by_its_ratios_and_by_what_it_keeps(evidence):
    rows = {row["variant"]: row for row in learned_values(evidence)}
    assert list(rows) == ["after embedding", "after attention"]  # one learned layer each
    row = rows["after embedding"]
    records = evidence.records("after_embedding")
    every = [v for run in records for values in run.result["ratios"].values() for v in values]
    assert row["ratio"] == f"{sum(every) / len(every):.3f}"
    assert row["from … to"] == f"{min(every):.3f} … {max(every):.3f}"
    kept = [float(row[f"keeps {band}"]) for band in ("0–¼π", "¼–½π", "½–¾π", "¾π–π")]
    assert kept == sorted(kept, reverse=True)
    assert 0 < kept[3] < kept[0] <= 1
    assert "weights" not in row
    assert rows["after attention"]["keeps 0–¼π"] == "–"  # no probe there


def test_a_mix_tells_the_weight_of_every_scale_in_the_order_of_its_config():
    mixed = {"kind": "multiscale", "scales": "slow fast"}
    ratios = {f"{STEM}.members.0.free": [0.1], f"{STEM}.members.1.free": [0.3]}
    weights = {STEM: [0.25, 0.75]}
    runs = {
        "mixed": one("mixed", mixed, ratios=ratios, weights=weights),
        "single": one("single", {"kind": "diffusion"}, ratios={f"{STEM}.free": [0.2]}),
    }
    rows = learned_values(printed(runs))
    assert rows[0]["weights"] == "slow 0.25, fast 0.75"
    assert rows[0]["ratio"] == "0.200"
    assert rows[1]["weights"] == ""


def test_scales_without_a_name_are_told_by_their_steps():
    mixed = {"kind": "multiscale", "scales": [{"steps": 2}, {"steps": 8}]}
    run = one("m", mixed, ratios={f"{STEM}.members.0.free": [0.1]}, weights={STEM: [0.5, 0.5]})
    assert learned_values(printed({"m": run}))[0]["weights"] == "2 steps 0.50, 8 steps 0.50"


def test_where_diffusion_went_is_told_by_position_the_largest_first():
    ratios = {
        f"{STEM}.free": [0.1, 0.2],
        "encoder.blocks.0.placed.layers.in_heads.layer.free": [0.4],
        "encoder.blocks.1.placed.layers.in_heads.layer.free": [0.2],
    }
    run = one("all", "diffusion", ("after_embedding", "in_heads"), ratios=ratios)
    rows = learned_placement(printed({"all": run}))
    assert [row["position"] for row in rows] == ["in heads", "after embedding"]
    assert rows[0] == {
        "variant": "all",
        "position": "in heads",
        "ratio": "0.300",
        "from … to": "0.200 … 0.400",
        "start, bound": "0.125, 0.25",
    }


def test_a_mean_that_one_task_decides_is_seen_when_that_task_is_left_out(evidence):
    assert left_out(evidence) == []  # of two tasks none can be spared
    third = {
        ("image-mini", variant): {
            seed: replace(run, result=run.result | {"test": {"accuracy": accuracy}})
            for seed, run in evidence.runs["text-mini", variant].items()
        }
        for variant, accuracy in (("baseline", 80.0), ("after_embedding", 20.0))
    }
    wider = replace(
        evidence,
        tasks=(*evidence.tasks, "image-mini"),
        runs=evidence.runs | third,
        variants=("baseline", "after_embedding", "after_attention"),
    )
    row, other = left_out(wider)
    assert row["without Text"].startswith("−")
    without = over_all(wider.select(tasks=evidence.tasks))["after_embedding"]
    assert row["without Image"].startswith(f"+{without.mean:.1f} [")
    assert other["variant"] == "after attention"


def test_nothing_is_shown_of_nothing():
    assert extra_tables(printed({"baseline": one("baseline", None, ())})) == {}
    bare = replace(printed({}), variants=("baseline", "x"), tasks=("a", "b", "c"))
    assert left_out(bare)[0]["without a"] == "…"


@pytest.mark.parametrize("weights", [None, {STEM: "none"}])
def test_weights_that_cannot_be_read_are_left_out(weights):
    run = one("m", {"kind": "multiscale"}, ratios={f"{STEM}.free": [0.1]}, weights=weights)
    assert "weights" not in learned_values(printed({"m": run}))[0]


def test_differences_stand_by_task_beside_their_mean_and_what_was_not_run_is_left_out():
    found = invented.evidence({"wide": 3.0, "twin": 1.0}, spread=0.0, seeds=6)
    pairs = {"first": ("wide", "twin"), "second": ("wide", "baseline"), "none": ("wide", "lost")}
    assert difference_table(found, "pair", pairs) == [
        {"pair": "first", "Text": "+2.0", "Image": "+2.0", "mean Δ [95 %]": "+2.0 [+2.0, +2.0]"},
        {"pair": "second", "Text": "+3.0", "Image": "+3.0", "mean Δ [95 %]": "+3.0 [+3.0, +3.0]"},
    ]
