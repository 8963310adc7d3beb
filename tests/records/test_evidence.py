import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from depthpde.records.evidence import (
    broke,
    by_task,
    escapes,
    gather,
    lacking,
    over_all,
    placed_at,
    score,
    trivial,
)
from depthpde.records.record import Record, run_folder
from depthpde.records.results import read_results
from depthpde.records.run_model import VariantRole
from depthpde.records.scores import scores_of
from report import synthesis


def read(results):
    found = read_results(results)
    return gather(found.grids["placement"], found.records)


def test_accuracies_are_those_of_the_records(evidence):
    found = evidence.accuracies("text-mini", "after_embedding")
    wanted = {s: synthesis.accuracy_of("text-mini", "after_embedding", s) for s in range(6)}
    assert found == wanted
    assert evidence.seeds == (6, 6)
    assert evidence.missing == ()


def test_a_comparison_is_computed_once_and_not_carried_into_a_part(evidence):
    assert over_all(evidence) is over_all(evidence)
    part = evidence.select(tasks=["text-mini"])
    assert part.compared == {}
    assert over_all(part)["after_embedding"].tasks == 1
    assert over_all(evidence)["after_embedding"].tasks == 2
    control = over_all(evidence, against="depthwise conv")
    assert control["after_embedding"].mean != over_all(evidence)["after_embedding"].mean


def test_finds_the_effects_that_were_put_in(evidence):
    found = over_all(evidence)
    assert set(found) == set(evidence.others)
    for variant, each in found.items():
        assert each.mean == pytest.approx(synthesis.EFFECT[variant], abs=0.5)
        assert (each.n, each.tasks) == (12, 2)
    assert found["after_attention"].interval.high < 0 < found["after_embedding"].interval.low


def test_differences_of_a_task_are_paired_by_seed(evidence):
    single = by_task(evidence)["listops-mini"]["after_embedding"]
    pairs = evidence.pairs("listops-mini", "after_embedding")
    assert single.mean == pytest.approx(sum(pairs.values()) / 6)
    assert pairs[3] == pytest.approx(
        synthesis.accuracy_of("listops-mini", "after_embedding", 3)
        - synthesis.accuracy_of("listops-mini", "baseline", 3)
    )


def test_a_baseline_is_there_if_it_is_finished_or_asked_for(tmp_path):
    grid = synthesis.write_placement(
        tmp_path, tasks=["text-mini"], variants=["baseline", "after_ffn"], seeds=1
    )
    assert read(tmp_path).has_baseline
    (run_folder(tmp_path, grid.cells[0].run) / "result.json").unlink()
    assert read(tmp_path).has_baseline
    assert not gather(replace(grid, cells=grid.cells[1:]), {}).has_baseline


def test_compares_with_another_variant_than_the_baseline(evidence):
    against = over_all(evidence, against="depthwise conv")
    assert "depthwise conv" not in against
    both = over_all(evidence)
    difference = both["after_embedding"].mean - both["depthwise conv"].mean
    assert against["after_embedding"].mean == pytest.approx(difference)


def test_trivial_lines_stand_lowest_first(evidence):
    assert list(trivial(evidence, "listops-mini").items()) == [
        ("majority", 15.5),
        ("root operator", 33.3),
    ]


def test_escapes_count_the_runs_clearly_past_a_line(evidence):
    found = escapes(evidence, "listops-mini", 33.3)
    reached = evidence.accuracies("listops-mini", "after_embedding").values()
    margin = 3 * (33.3 * 66.7 / 5000) ** 0.5
    assert found["after_embedding"].escaped == sum(each > 33.3 + margin for each in reached) > 0
    assert found["after_attention"].escaped == 0


def test_roles_and_positions_follow_from_the_configs(evidence):
    assert [evidence.role(each) for each in evidence.variants] == [
        VariantRole.BASELINE, VariantRole.OURS, VariantRole.OURS,
        VariantRole.CONTROL, VariantRole.OURS,
    ]  # fmt: skip
    assert placed_at(evidence) == {
        "after_embedding": "after_embedding",
        "after_attention": "after_attention",
    }


def test_a_part_keeps_the_baseline_and_refuses_names_it_does_not_know(evidence):
    part = evidence.select(tasks=["text-mini"], variants=["after_embedding"])
    assert part.tasks == ("text-mini",)
    assert part.variants == ("baseline", "after_embedding")
    assert set(part.runs) == {("text-mini", "baseline"), ("text-mini", "after_embedding")}
    alone = over_all(part)["after_embedding"]
    assert alone.mean == pytest.approx(by_task(evidence)["text-mini"]["after_embedding"].mean)
    with pytest.raises(ValueError, match=r"`tasks` must be one of .* did you mean 'text-mini'"):
        evidence.select(tasks=["text-min"])
    with pytest.raises(ValueError, match="`variants` must be one of"):
        evidence.select(variants=["nothing"])


def test_a_run_without_result_is_missing_with_its_state(results):
    cells = json.loads((results / "grids" / "placement.json").read_text())["cells"]
    first, second = cells[0]["run"], cells[1]["run"]
    (run_folder(results, first) / "result.json").unlink()
    (run_folder(results, first) / "status.json").write_text('{"state": "interrupted"}')
    for path in run_folder(results, second).iterdir():
        path.unlink()
    run_folder(results, second).rmdir()
    found = read(results)
    states = {each.run: each.state for each in found.missing}
    assert states == {first: "interrupted", second: "pending"}
    assert found.seeds == (4, 6)
    assert over_all(found)["after_embedding"].n == 10


def test_a_run_that_broke_counts_as_the_largest_class(results):
    run = next(iter(read(results).runs["listops-mini", "after_embedding"].values()))
    path = run.folder / "result.json"
    values = json.loads(path.read_text()) | {"status": "diverged", "test": None}
    path.write_text(json.dumps(values))
    assert read(results).accuracies("listops-mini", "after_embedding")[0] == 15.5
    path.write_text(json.dumps(values | {"trivial": {"commonest byte": 19.5}}))
    assert score(read_results(results).records[run.id]) == 19.5
    path.write_text(json.dumps(values | {"trivial": {}}))
    assert score(read_results(results).records[run.id]) is None


def test_a_run_that_ended_without_a_test_result_counts_as_the_largest_class(results):
    run = next(iter(read(results).runs["listops-mini", "baseline"].values()))
    path = run.folder / "result.json"
    values = json.loads(path.read_text()) | {"test": None}
    path.write_text(json.dumps(values))
    found = read(results)
    assert found.missing == ()
    assert found.accuracies("listops-mini", "baseline")[0] == 15.5
    path.write_text(json.dumps(values | {"trivial": {}}))
    assert [each.state for each in read(results).missing] == ["without a score"]


def test_a_run_broke_if_it_ended_without_a_model():
    kept = {"test": {"accuracy": 60.0}}
    ends = [
        (None, False),
        ({"status": "done"} | kept, False),
        ({"status": "diverged"} | kept, True),
        ({"status": "done", "test": None}, True),
        ({"status": "stopped", "test": {"accuracy": math.nan}}, True),
    ]
    for result, wanted in ends:
        assert broke(Record(Path(), "r", "", {}, {}, {}, result)) is wanted, result


def test_pairs_are_counted_in_what_is_averaged(evidence):
    assert lacking(evidence, "after_embedding") is None
    scores = scores_of(evidence)
    part = {name: {"text-mini": each["text-mini"]} for name, each in scores.items()}
    assert lacking(evidence, "after_embedding", scores=scores) is None
    why = lacking(evidence, "after_embedding", scores=part)
    assert why == "0 pairs on listops-mini, 6 on every task are wanted"


def test_variants_with_one_seed_have_a_mean_and_no_interval(tmp_path):
    synthesis.write_placement(
        tmp_path, tasks=["text-mini"], variants=["baseline", "after_ffn"], seeds=1
    )
    found = read(tmp_path)
    assert by_task(found) == {"text-mini": {}}
    assert over_all(found)["after_ffn"].interval is None
