"""Paper B's quantities by layer, from committed records and from records that are known."""

import json
from pathlib import Path

import numpy as np
import pytest

from depthpde.papers.ablation.by_depth import (
    ATTENTION,
    CENTRED,
    COSINE,
    GRADIENT,
    LIKE,
    MEASURES,
    TOKENS,
    TRAINING,
    depth_table,
    layer_tables,
    likeness,
    training_table,
)
from depthpde.papers.ablation.variants import STABILIZERS
from depthpde.records.evidence import Evidence, gather
from depthpde.records.probes import read_probe
from depthpde.records.record import Record, read_grids, read_records


@pytest.fixture(scope="module")
def committed():
    results = Path(__file__).parents[3] / "results"
    grid = read_grids(results).by_name["stabilization"]
    return gather(grid, read_records(results).found)


def test_attention_moves_less_and_less_where_residuals_are_missing(committed):
    rows = {r["variant"]: r for r in depth_table(committed, ATTENTION)}
    assert set(rows) == {f"Transformer, {name}" for name in STABILIZERS}
    both, none = rows["Transformer, both"], rows["Transformer, no residual"]
    assert both["runs"] == "18"
    assert float(none["5 → 6"]) < float(none["1 → 2"])
    assert float(none["5 → 6"]) < float(both["5 → 6"])
    bare = rows["Transformer, no norm"]
    steps = [f"{k} → {k + 1}" for k in range(1, 6)]
    assert all(float(bare[step]) < float(both[step]) for step in steps)


def test_both_systems_have_cosines_and_gradients_at_every_depth(committed):
    for title in (COSINE, CENTRED, TOKENS, GRADIENT):
        measure = MEASURES[title]
        rows = {r["variant"]: r for r in depth_table(committed, title)}
        assert len(rows) == 8
        for variant, row in rows.items():
            assert [key for key in row if key.isdigit()] == [str(k) for k in range(7)]
            told = [
                read_probe(run).value["depth"][measure][6] for run in committed.records(variant)
            ]
            assert float(row["6"]) == pytest.approx(np.mean(told), rel=0.05, abs=6e-4)


def test_every_table_has_its_rows(committed):
    tables = layer_tables(committed)
    assert list(tables) == [COSINE, CENTRED, TOKENS, GRADIENT, ATTENTION, TRAINING, LIKE]
    assert [row["both systems with"] for row in tables[LIKE]] == list(STABILIZERS)
    assert {row["pairs"] for row in tables[LIKE]} == {"18"}


def a_run(folder, seed, *, status="done", norms=(), accuracy=50.0, classes=None):
    folder.mkdir(parents=True)
    lines = [{"kind": "point", "update": k, "gradient_norm": n} for k, n in enumerate(norms)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    test = None if accuracy is None else {"accuracy": accuracy}
    if classes is not None:
        (folder / "predictions.u8").write_bytes(bytes(classes))
        test["count"] = len(classes)
    result = {"status": status, "test": test, "trivial": {"majority": 20.0}}
    return Record(folder, str(seed), "", {"seed": seed}, {}, {"state": status}, result)


def evidence_of(runs):
    variants = tuple(dict.fromkeys(variant for _, variant in runs))
    return Evidence(
        name="six-blocks", question="", baseline=variants[0], tasks=("listops-mini",),
        variants=variants, words={}, runs=runs, missing=(),
    )  # fmt: skip


def test_what_diverged_counts_as_the_largest_class_and_is_told(tmp_path):
    runs = {
        ("listops-mini", "clipped"): {
            k: a_run(tmp_path / f"a{k}", k, norms=[1.0, 3.0 + k], accuracy=40.0 + k)
            for k in range(3)
        },
        ("listops-mini", "unclipped"): {
            0: a_run(tmp_path / "b0", 0, norms=[2.0, 5e4], status="diverged", accuracy=None),
            1: a_run(tmp_path / "b1", 1, accuracy=30.0),
        },
    }
    calm, wild = training_table(evidence_of(runs))
    assert calm == {
        "variant": "clipped", "accuracy": "41.0", "diverged": "0 of 3",
        "largest gradient norm, median": "4.000", "worst": "5.000",
    }  # fmt: skip
    assert wild["accuracy"] == "25.0"
    assert wild["diverged"] == "1 of 2"
    assert wild["worst"] == "5.0e+04"


def test_variants_without_a_result_have_no_row(tmp_path):
    runs = {("listops-mini", "none yet"): {}}
    assert training_table(evidence_of(runs)) == []
    assert layer_tables(evidence_of(runs)) == {}


def test_systems_that_answer_alike_have_a_kappa_of_one_and_strangers_none(tmp_path):
    rng = np.random.default_rng(0)
    ours, stranger = rng.integers(0, 4, size=(2, 4000), dtype=np.uint8)
    runs = {
        ("listops-mini", "Transformer, both"): {0: a_run(tmp_path / "t", 0, classes=ours)},
        ("listops-mini", "simulator, both"): {0: a_run(tmp_path / "s", 0, classes=ours)},
        ("listops-mini", "Transformer, no norm"): {0: a_run(tmp_path / "n", 0, classes=ours)},
        ("listops-mini", "simulator, no norm"): {0: a_run(tmp_path / "m", 0, classes=stranger)},
    }
    found = likeness(evidence_of(runs))
    assert set(found) == {"both", "no norm"}
    assert found["both"]["listops-mini"][0] == 1.0
    assert abs(found["no norm"]["listops-mini"][0]) < 0.05
