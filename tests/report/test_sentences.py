import json
import re
from dataclasses import replace

import pytest

from depthpde.papers import protocol_table
from depthpde.records.evidence import gather, over_all
from depthpde.records.protocols.protocol import PlannedContrast
from depthpde.records.results import read_results
from depthpde.records.ungrouped import UNGROUPED
from depthpde.records.verdicts import Outcome
from depthpde.report.sentences import MARKS, _tested, judge
from papers.confirmatory.test_conclusion import PROTOCOL, under
from papers.invented import evidence as invented
from report import synthesis


def read(results):
    found = read_results(results)
    return gather(found.grids["placement"], found.records)


def set_accuracy(result, accuracy):
    """Change the accuracy of a result, and the counts that it follows from."""
    test = result["test"]
    test["correct"] = round(accuracy * test["targets"] / 100)
    test["accuracy"] = 100 * test["correct"] / test["targets"]


def test_says_what_helps_what_harms_and_what_against(evidence):
    best, worst, against = judge(evidence)
    assert (best.mark, best.tone, best.strong) == ("▲", "ours", "After embedding helps most:")
    mean = over_all(evidence)["after_embedding"].mean
    assert best.text.startswith(f"+{mean:.1f} points over the baseline [")
    assert "mean of 2 tasks, n = 12 pairs" in best.text
    assert (worst.mark, worst.strong) == ("▼", "After attention harms:")
    assert "against depthwise conv, the control" in against.text


def test_says_that_few_pairs_cannot_tell_whatever_they_say(tmp_path):
    synthesis.write_placement(
        tmp_path, tasks=["text-mini"], variants=["baseline", "after_ffn", "in_heads"], seeds=3
    )
    (output,) = judge(read(tmp_path))
    assert output.strong == "Too few pairs to tell:"
    assert output.text.startswith("the best of 2, after ffn, is at +")
    assert "p\u00a0=\u00a00.50 after Holm over 2 variants" in output.text


def test_many_tasks_of_few_seeds_cannot_tell_either(tmp_path):
    five = ["listops-mini", "text-mini", "retrieval-mini", "image-mini", "pathfinder-mini"]
    synthesis.write_placement(
        tmp_path, tasks=five, variants=["baseline", "after_embedding"], seeds=5
    )
    (output,) = judge(read(tmp_path))
    assert output.strong == "Too few pairs to tell:"


def test_says_so_where_enough_pairs_show_nothing(results):
    evidence = read(results).select(variants=["after_embedding"])
    for run in evidence.records("after_embedding"):
        path = run.folder / "result.json"
        values = json.loads(path.read_text())
        set_accuracy(values, values["test"]["accuracy"] - 2.0)
        path.write_text(json.dumps(values))
    (output,) = judge(read(results).select(variants=["after_embedding"]))
    assert output.strong == "After embedding is not shown to help:"


@pytest.mark.parametrize(
    ("shift", "strong", "mark"),
    [
        (-3.0, "More than the controls give:", "▲"),
        (5.0, "Less than a control gives:", "▼"),
    ],
)
def test_a_control_is_compared_seed_by_seed(results, shift, strong, mark):
    for run in read(results).records("depthwise conv"):
        path = run.folder / "result.json"
        values = json.loads(path.read_text())
        set_accuracy(values, values["test"]["accuracy"] + shift)
        path.write_text(json.dumps(values))
    output = judge(read(results))[2]
    assert (output.strong, output.mark) == (strong, mark)


def test_a_control_that_is_as_good_is_said_to_be(results):
    evidence = read(results)
    for task in evidence.tasks:
        for seed, run in evidence.runs[task, "depthwise conv"].items():
            path = run.folder / "result.json"
            values = json.loads(path.read_text())
            better = evidence.accuracies(task, "after_embedding")[seed]
            set_accuracy(values, better + 0.1 * (-1) ** seed)
            path.write_text(json.dumps(values))
    assert judge(read(results))[2].strong == "Not shown to differ from the best control:"


def test_missing_runs_make_it_preliminary(results):
    run = read(results).records("baseline")[0]
    (run.folder / "result.json").unlink()
    assert judge(read(results))[-1].text == "59 of 60 runs have a result"


def test_a_grid_about_something_else_is_judged_all_the_same(evidence):
    (output,) = judge(evidence.select(variants=["depthwise conv"]))
    assert output.strong == "Depthwise conv helps:"


def test_without_a_control_diffusion_is_one_variant_among_others(results):
    for run in read(results).records("depthwise conv"):
        changed = {
            "config.json": run.folder / "config.json",
            "result.json": run.folder / "result.json",
        }
        values = {name: json.loads(path.read_text()) for name, path in changed.items()}
        values["config.json"]["config"]["model"]["positions"] = []  # neither ours nor a control
        result = values["result.json"]
        set_accuracy(result, result["test"]["accuracy"] + 5.0)
        for name, path in changed.items():
            path.write_text(json.dumps(values[name]))
    best, *rest = judge(read(results))
    assert best.strong == "Depthwise conv helps most:"
    assert not any("control" in each.strong for each in rest)


def test_runs_without_a_pair_are_nothing_to_judge(evidence):
    (output,) = judge(evidence.select(variants=["baseline"]))
    assert output.strong == "Nothing is compared:"
    assert output.text == "12 runs, none that makes a pair"


def test_tests_of_a_protocol_bear_the_marks_of_the_page_of_claims():
    """By the verdicts themselves: a variant may be called anything, such as *not reached*."""
    most = PlannedContrast(
        variant="not reached", against="baseline", endpoint="accuracy", margin=2.0
    )
    more = PlannedContrast(variant="twin", against="not reached", endpoint="accuracy")
    protocol = replace(PROTOCOL, contrasts=(most, more))
    found = under(invented({"not reached": 1.0, "twin": 1.0}, name="made"), protocol)
    first, second = judge(replace(found, protocol=protocol))
    assert (first.mark, first.strong) == (MARKS[Outcome.SMALLER], "Smaller than claimed:")
    assert "not reached by the order" not in first.text
    assert second.text.endswith("not reached by the order of tests")
    assert MARKS.keys() == set(Outcome)


def test_a_test_without_a_number_is_told_without_one():
    """It ended as ”:, n = 6, where what is compared was laid down and not measured."""
    contrast = PlannedContrast(variant="twin", against="baseline", endpoint="accuracy")
    protocol = replace(PROTOCOL, contrasts=(contrast,))
    found = under(invented({"twin": 1.0}, name="made"), protocol)
    (claim,) = protocol_table.tested_claims(replace(found, protocol=protocol))
    told = _tested(replace(claim, effect=None, interval=None, p=None))
    assert told.text == f"“{claim.claim.rstrip('.')}”, n\u00a0=\u00a0{claim.n}"


def test_a_small_effect_keeps_the_digits_that_tell_it():
    """Cosines and decades ended as ±0.0 [±0.0, +0.1]."""
    contrast = PlannedContrast(variant="twin", against="baseline", endpoint="accuracy")
    protocol = replace(PROTOCOL, contrasts=(contrast,))
    found = under(invented({"twin": 0.018}, name="made"), protocol)
    (claim,) = judge(replace(found, protocol=protocol))
    assert re.search(r"found [+−]0\.\d\d+ points \[[+−]\d\.\d\d+, [+−]\d\.\d\d+\], n", claim.text)


def loose(results):
    found = read_results(results)
    return gather(found.grids[UNGROUPED], found.records)


def test_a_lone_run_is_told_how_it_comes_to_a_pair(tmp_path):
    synthesis.write_run(tmp_path, "text-mini", "after_ffn", 3)
    (output,) = judge(loose(tmp_path))
    assert output.text.startswith(
        "1 run, none that makes a pair; train the baseline with the same "
    )
    assert output.text.endswith(": depthpde train text-mini --seed 3 --updates 800")
    synthesis.write_run(tmp_path, "text-mini", "baseline", 3)
    assert judge(loose(tmp_path))[0].strong == "Too few pairs to tell:"


def test_a_lone_baseline_is_told_what_to_train_beside_it(tmp_path):
    synthesis.write_run(tmp_path, "text-mini", "baseline", 0)
    (output,) = judge(loose(tmp_path))
    assert "; train another model with the same --out, seed and settings" in output.text
    assert output.text.endswith("--seed 0 --updates 800 --position after_embedding")


def test_a_run_that_does_not_tell_its_updates_is_told_the_rest(tmp_path):
    run = synthesis.write_run(tmp_path, "text-mini", "after_ffn", 0)
    path = tmp_path / "runs" / run / "config.json"
    values = json.loads(path.read_text())
    del values["config"]["training"]
    path.write_text(json.dumps(values))
    (output,) = judge(loose(tmp_path))
    assert output.text.endswith(": depthpde train text-mini --seed 0")
