"""Signs of a missing stabilizer, from records that are known; what diverged is never left out."""

import json
from pathlib import Path

import pytest

from depthpde.papers.ablation.signs import LOST, sign_scores
from depthpde.records.evidence import Evidence
from depthpde.records.protocols.endpoints import COSINE_TO_INPUT, LARGEST_GRADIENT
from depthpde.records.record import Record


def evidence(folder, *, status="done", test=True, norms=(), cosines=None):
    folder.mkdir()
    points = [{"kind": "point", "update": k, "gradient_norm": norm} for k, norm in enumerate(norms)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(each) + "\n" for each in points))
    if cosines is not None:
        (folder / "probe.json").write_text(json.dumps({"depth": {"drift.cosine": cosines}}))
    result = {"status": status, "test": {"accuracy": 50.0} if test else None}
    run = Record(Path(folder), "r", "", {}, {}, {}, result)
    return Evidence(
        name="made", question="?", baseline="v", tasks=("t",), variants=("v",), words={},
        runs={("t", "v"): {100: run}}, missing=(),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("status", "norms", "wanted"),
    [
        ("done", [0.5, 100.0, 3.0], 2.0),
        ("done", [1e6], 6.0),
        ("diverged", [10.0], LOST),
        ("diverged", [1e6, float("inf")], 6.0),
        ("diverged", [], LOST),
    ],
)
def test_the_largest_gradient_counts_in_decades_and_a_divergence_as_four(
    tmp_path, status, norms, wanted
):
    found = sign_scores(evidence(tmp_path / "r", status=status, norms=norms), LARGEST_GRADIENT)
    assert found["v"]["t"][100] == pytest.approx(wanted)


def test_the_cosine_is_that_of_the_last_block_and_none_is_left_where_training_diverged(tmp_path):
    seen = evidence(tmp_path / "a", cosines=[1.0, 0.4, 0.25])
    assert sign_scores(seen, COSINE_TO_INPUT) == {"v": {"t": {100: 0.25}}}
    lost = evidence(tmp_path / "b", status="diverged", cosines=[1.0, 0.9])
    assert sign_scores(lost, COSINE_TO_INPUT) == {"v": {"t": {100: 0.0}}}


def test_a_run_that_ended_without_a_test_result_counts_like_one_that_diverged(tmp_path):
    lost = evidence(tmp_path / "a", test=False, norms=[10.0], cosines=[1.0, 0.9])
    assert sign_scores(lost, LARGEST_GRADIENT) == {"v": {"t": {100: LOST}}}
    assert sign_scores(lost, COSINE_TO_INPUT) == {"v": {"t": {100: 0.0}}}


def test_a_run_without_a_probe_or_a_gradient_has_no_sign(tmp_path):
    bare = evidence(tmp_path / "r")
    assert sign_scores(bare, COSINE_TO_INPUT) == sign_scores(bare, LARGEST_GRADIENT) == {}
