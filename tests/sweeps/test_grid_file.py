"""A grid in a file of a person's own."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

from depthpde.papers import architectures, placement
from depthpde.sweeps.grid_file import read_plan

GRID = {
    "name": "width",
    "question": "Does width matter?",
    "tasks": ["listops-mini"],
    "seeds": [3, 5],
    "model": {"dim": 16},
    "training": {"updates": 20, "warmup": 2},
    "variants": {
        "narrow": None,
        "wide": {"words": "twice as wide", "model": {"dim": 32}, "training": {"updates": 10}},
    },
}
EXAMPLES, CONTROLS = Path(__file__).parents[2] / "examples", "decoder-controls.yaml"


def write(tmp_path, file="grid.json", **changes):
    path = tmp_path / file
    output = {key: each for key, each in (GRID | changes).items() if each != "left out"}
    path.write_text(json.dumps(output) if path.suffix == ".json" else yaml.safe_dump(output))
    return path


@pytest.mark.parametrize("name", ["grid.json", "grid.yaml", "grid.yml"])
def test_a_file_becomes_a_plan(tmp_path, name):
    plan = read_plan(write(tmp_path, name))
    assert (plan.name, plan.question, plan.baseline) == ("width", "Does width matter?", "narrow")
    assert [cell.seed for cell, _ in plan.cells] == [3, 3, 5, 5]
    sizes = [(run.model.dim, run.training.updates) for run in plan.runs]
    assert sizes[:2] == [(16, 20), (32, 10)]
    assert plan.grid.variants["wide"] == {"words": "twice as wide"}
    assert plan.command == f"depthpde sweep {tmp_path / name}"


def test_a_rate_in_yaml_may_be_written_as_people_write_it(tmp_path):
    path = tmp_path / "grid.yaml"
    text = yaml.safe_dump({key: GRID[key] for key in ("tasks", "seeds", "variants")})
    path.write_text(text + "training: {learning_rate: 2e-3, warmup: 2}\n")
    assert {run.training.learning_rate for run in read_plan(path).runs} == {0.002}


def test_yaml_without_its_library_says_what_to_install(tmp_path, monkeypatch):
    path = write(tmp_path, "grid.yaml")
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(ValueError, match="YAML needs PyYAML: pip install pyyaml"):
        read_plan(path)


def test_the_command_line_wins_over_the_file(tmp_path):
    plan = read_plan(write(tmp_path, tasks="left out"), seeds=1, tasks=["text-mini"])
    assert [(cell.task, cell.seed) for cell, _ in plan.cells] == [("text-mini", 0)] * 2


def test_a_file_without_a_name_has_that_of_its_file(tmp_path):
    assert read_plan(write(tmp_path, "mine.json", name="left out")).name == "mine"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"variant": {}}, r"grid.json: `the file` must be one of .* did you mean 'variants'"),
        ({"variants": "left out"}, "`variants` must be given"),
        ({"variants": ["a"]}, "`variants` must be a mapping"),
        ({"variants": {"a": {"mdel": {}}}}, "`variants.a` must be one of .*did you mean 'model'"),
        ({"variants": {"a": {"model": 3}}}, "`a.model` must be a mapping, got 3"),
        ({"tasks": "listops-mini"}, "`tasks` must be a list, got 'listops-mini'"),
        ({"tasks": ["listop-mini"]}, "`task` must be one of .*did you mean 'listops-mini'"),
        ({"tasks": ["listops"]}, "`preset` 'mini' must be of a task it knows, got 'listops'"),
        ({"seeds": "six"}, "`seeds` must be a whole number, or a list of such, got 'six'"),
        ({"seeds": [0, -1]}, "`seeds` must be a whole number, or a list"),
        ({"preset": "minni"}, "`preset` must be one of .*did you mean 'mini'"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        read_plan(write(tmp_path, **changes))


def test_a_file_of_another_kind_or_form_is_refused(tmp_path):
    path = tmp_path / "grid.toml"
    path.write_text("")
    with pytest.raises(ValueError, match=r"must be a .json, .yaml or .yml file, got 'grid.toml'"):
        read_plan(path)
    for name, text in (("a.yaml", "a: [1"), ("a.json", "{")):
        (tmp_path / name).write_text(text)
        with pytest.raises(ValueError, match=name):
            read_plan(tmp_path / name)
    (tmp_path / "list.yaml").write_text("- a")
    with pytest.raises(ValueError, match="`the file` must be a mapping"):
        read_plan(tmp_path / "list.yaml")
    with pytest.raises(ValueError, match=r"none.yaml: there is no such file; depthpde sweep"):
        read_plan(tmp_path / "none.yaml")


def test_the_longer_pathfinder_differs_from_placement_in_its_updates_alone():
    longer = read_plan(EXAMPLES / "pathfinder-longer.yaml")
    placed = placement.EXPERIMENT.plan(tasks=["pathfinder-mini"])
    usual = {(cell.variant, cell.seed): run for cell, run in placed.cells}
    assert len(longer.cells) == 24
    for cell, run in longer.cells:
        same = usual[cell.variant, cell.seed]
        assert run.training.updates == 3 * same.training.updates
        assert replace(run, training=same.training) == same


def test_the_decoder_with_controls_is_that_of_the_architectures():
    controls = read_plan(EXAMPLES / CONTROLS)
    ours = {
        (cell.task, cell.variant, cell.seed): run
        for cell, run in architectures.EXPERIMENT.plan().cells
    }
    shared = {"baseline": "Transformer, both", "in the equation": "simulator, both"}
    assert len(controls.cells) == 90
    for cell, run in controls.cells:
        if cell.variant in shared:
            assert run == ours[cell.task, shared[cell.variant], cell.seed]
        else:
            usual = ours[cell.task, shared["baseline"], cell.seed]
            assert replace(run, model=usual.model) == usual


def test_the_longer_decoder_differs_from_the_controls_in_its_updates_alone():
    usual = {(c.variant, c.seed): run for c, run in read_plan(EXAMPLES / CONTROLS).cells}
    longer = read_plan(EXAMPLES / "decoder-longer.yaml").cells
    assert len(longer) == 21
    for cell, run in longer:
        same = usual[cell.variant, cell.seed]
        updates = {"updates": 3 * same.training.updates}
        updates["evaluate_every"] = updates["updates"]
        assert run == replace(same, training=replace(same.training, **updates))


STUDY = {
    "tuning_seeds": [200],
    "test_seeds": [100, 101],
    "rates": [0.001, 0.002],
    "endpoints": ["accuracy"],
    "contrasts": [{"variant": "wide", "against": "narrow", "endpoint": "accuracy"}],
    "looks": [{"seeds": 2, "p": 0.05}],
}
UNDER = {"seeds": "left out", "variants": {"narrow": None, "wide": {"model": {"dim": 32}}}}


def test_a_file_may_carry_a_protocol(tmp_path):
    plan = read_plan(write(tmp_path, "grid.yaml", study=STUDY, **UNDER))
    assert (plan.study.name, plan.study.question) == ("width", "Does width matter?")
    assert plan.study.contrasts[0].against == "narrow"
    assert read_plan(write(tmp_path)).study is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"study": STUDY, "seeds": [3]}, r"`seeds` must be left out beside `study`, got \[3\]"),
        ({"study": STUDY | {"name": "b"}}, "the grid's, 'width', got 'b'"),
        ({"study": 3}, "`study` must be a mapping, got 3"),
        ({"study": STUDY | {"rate": 1}}, "`study key`.*did you mean 'rates'"),
        ({"training": {"update": 1}}, "`training key`.*did you mean 'updates'"),
        ({"study": STUDY | {"test_seeds": ["100", "101"]}}, "`test_seeds` must be a whole number"),
        # what is wrong with its tests: test_study_tests.py
        ({"study": STUDY, "variants": GRID["variants"]}, "grid.json.*leave updates.*got 10"),
    ],
)
def test_a_protocol_that_leaves_a_choice_open_is_refused(tmp_path, changes, words):
    with pytest.raises(ValueError, match=words):
        read_plan(write(tmp_path, **UNDER | changes))


def test_a_part_of_the_tasks_of_a_protocol_is_not_judged(tmp_path):
    path = write(tmp_path, tasks=["listops-mini", "text-mini"], study=STUDY, **UNDER)
    with pytest.raises(ValueError, match=r"`tasks` must be left out beside `study`, got text-mini"):
        read_plan(path, tasks=["text-mini"])
    assert list(read_plan(path).bases) == ["listops-mini", "text-mini"]


def test_a_gate_names_a_task_of_ones_own_as_its_records_do(tmp_path):
    folder = tmp_path / "own"
    folder.mkdir()
    np.save(folder / "x.npy", np.random.default_rng(0).normal(size=(200, 16)).astype("float32"))
    np.save(folder / "y.npy", np.arange(200) % 2)
    (task,) = read_plan(write(tmp_path, tasks=[str(folder)])).bases

    def gated(name):
        gate = {"task": name, "endpoint": "accuracy", "least": 50, "words": "chance"}
        study = STUDY | {"gates": [gate]}
        return read_plan(write(tmp_path, tasks=[str(folder)], study=study, **UNDER))

    assert gated(task).study.gates[0].task == task
    with pytest.raises(ValueError, match=f"`study.gates.task` must be one of {task}, got"):
        gated(str(folder))
