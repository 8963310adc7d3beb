from pathlib import Path

from depthpde.records.evidence import gather
from depthpde.records.results import read_results
from depthpde.report.limits import limits
from report import synthesis


def limits_of(results):
    found = read_results(results)
    return limits(found, gather(found.grids["placement"], found.records))


def test_the_least_difference_the_tasks_and_the_models_are_named(shared_results):
    first, second, third = limits_of(shared_results)
    assert first.startswith("Differences below about 0.")
    assert "from 12 pairs of runs" in first
    assert "800 updates" in second
    assert "60 of 60 finished runs (marked °)" in third


def test_missing_runs_and_files_are_named(results):
    runs = sorted((results / "runs").iterdir())
    (runs[0] / "result.json").write_text("{")
    output = " ".join(limits_of(results))
    assert "the 1 run without a result" in output
    assert "What 1 file would say" in output


def test_one_seed_judges_nothing(tmp_path):
    synthesis.write_placement(
        tmp_path, tasks=["text-mini"], variants=["baseline", "rotary"], seeds=1
    )
    assert limits_of(tmp_path)[0].startswith("No variant has enough paired runs")


def test_a_task_that_stands_in_no_mean_is_named_with_what_it_would_do():
    found = read_results(Path(__file__).parents[2] / "results")
    output = limits(found, gather(found.grids["placement"], found.records))[1]
    assert output.startswith("What pathfinder-mini would do in the mean")
    assert "between −3.5 and +0.3" in output
