"""A plan becomes runs: paired, in order, each once."""

from __future__ import annotations

import os
from dataclasses import replace
from threading import Thread

import pytest
import torch

from depthpde.locks import GRIDS_LOCK, lock_file
from depthpde.records.record import read_grid, write_grid
from depthpde.runs.presets import preset
from depthpde.runs.run import RunConfig
from depthpde.simulator.config import SimulatorConfig
from depthpde.sweeps.grid import Plan, Variant, bases
from depthpde.training.pretraining import PretrainingConfig

BASELINE = Variant("baseline")
EMBEDDING = Variant("after embedding", "one step", model={"positions": ("after_embedding",)})


def plan(**changes) -> Plan:
    chosen = {
        "name": "question", "question": "Does it help?", "variants": [BASELINE, EMBEDDING],
        "bases": bases("mini", ["listops-mini", "text-mini"]), "seeds": 2,
    }  # fmt: skip
    return Plan(**(chosen | changes))


def test_cells_come_seed_by_seed_so_that_a_cut_leaves_whole_pairs():
    order = [(cell.seed, cell.task, cell.variant) for cell, _ in plan().cells]
    assert order == [
        (seed, task, variant)
        for seed in (0, 1)
        for task in ("listops-mini", "text-mini")
        for variant in ("baseline", "after embedding")
    ]


def test_a_variant_changes_what_it_says_and_nothing_else():
    first, second = (run for _, run in plan(seeds=[4]).cells[:2])
    base = preset("mini", "listops-mini")
    assert first.training == replace(base.training, seed=4)
    assert first.model.dim == base.model.dim
    assert second.label == "after_embedding"
    assert replace(second, model=first.model) == first


def test_a_run_too_short_for_the_warmup_of_its_preset_has_a_shorter_one():
    short = Variant("short", training={"updates": 30})
    asked = plan(variants=[short, BASELINE], bases=bases("mini", ["text-mini"]))
    assert {run.training.updates: run.training.warmup for run in asked.runs} == {30: 3, 800: 50}
    (base,) = bases("mini", ["text-mini"], training={"updates": 30}).values()
    assert base.training.warmup == 3
    with pytest.raises(ValueError, match="`warmup` must be less than `updates` = 30"):
        bases("mini", ["text-mini"], training={"updates": 30, "warmup": 50})


def test_one_seed_is_one_set_of_shared_first_weights():
    first, second = (run.build().state_dict() for _, run in plan().cells[:2])
    assert first.keys() < second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_equal_settings_share_a_run_in_one_grid_and_between_two():
    same = Variant("the same again")
    shared = plan(variants=[BASELINE, same])
    assert len(shared.cells) == 8
    assert len(shared.runs) == 4
    assert {run.id for run in shared.runs} < {run.id for run in plan(name="other").runs}


def test_the_folder_is_told_what_each_run_is_called(tmp_path):
    asked = plan()
    read = read_grid(asked.write(tmp_path))
    assert read == asked.grid
    assert read.baseline == "baseline"
    assert read.variants["after embedding"] == {"words": "one step"}
    assert read.cells[0].run == asked.runs[0].id


def test_a_part_of_a_grid_leaves_the_rest_of_it_in_the_folder(tmp_path):
    whole = plan(seeds=3)
    whole.write(tmp_path)
    part = plan(seeds=1, variants=[BASELINE], bases=bases("mini", ["text-mini"]))
    read = read_grid(part.write(tmp_path))
    assert set(read.cells) == set(whole.grid.cells)
    assert [cell.seed for cell in read.cells] == sorted(cell.seed for cell in read.cells)
    assert read.variants == whole.grid.variants
    assert read_grid(whole.write(tmp_path)) == whole.grid
    more = plan(seeds=4)
    assert read_grid(more.write(tmp_path)) == more.grid


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"bases": bases("mini", ["listops-mini"], training={"updates": 60})}, "other settings"),
        ({"bases": bases("nystrom-2021", ["listops"])}, "no cell of it"),
    ],
)
def test_another_experiment_of_the_same_name_is_not_written_over(tmp_path, changes, words):
    path = plan().write(tmp_path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=rf"'question' must go on with .*{words}.*--out"):
        plan(**changes).write(tmp_path)
    assert path.read_bytes() == before


def test_settings_of_the_run_itself_can_be_varied():
    old = plan(variants=[Variant("older data", run={"recipe": 7})])
    assert {run.recipe for run in old.runs} == {7}


@pytest.mark.parametrize(
    "part",
    [
        {"pretraining": {"updates": 5}},
        {"pretraining": PretrainingConfig(updates=5)},
        {"simulator": {"method": "strang"}},
        {"simulator": SimulatorConfig(method="strang")},
    ],
)
def test_a_stage_or_a_simulator_said_in_plain_words_is_the_run_that_a_worker_reads(part):
    for cell, run in plan(variants=[Variant("varied", run=part)]).cells:
        assert cell.run == run.id == RunConfig.from_dict(run.to_dict()).id
        assert (run.pretraining or run.simulator) is not None
        assert not isinstance(run.pretraining or run.simulator, dict)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "a/b"}, "`name` must be of letters, digits.*got 'a/b'"),
        ({"seeds": 0}, "`seeds` must be at least 1, got 0"),
        ({"seeds": [1, 1]}, "`seeds` must differ from each other, got 1 twice"),
        ({"variants": []}, "`variants` must hold at least one, got none"),
        ({"variants": [BASELINE, BASELINE]}, "`variants` must differ .* got 'baseline' twice"),
        ({"bases": {}}, "`bases` must hold at least one"),
        ({"baseline": "bsaeline"}, "`baseline` must be one of .* did you mean 'baseline'"),
    ],
)
def test_a_plan_that_cannot_be_computed_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        plan(**changes)


@pytest.mark.parametrize(
    ("variant", "message"),
    [
        ({"model": {"dmi": 8}}, "'odd' on listops-mini: .*did you mean 'dim'"),
        ({"training": {"updates": 0}}, "'odd' on listops-mini: `updates` must be at least 1"),
        ({"run": {"simulator": {"mehod": "lie"}}}, "'odd' on .*did you mean 'method'"),
        ({"run": {"protcol": "strict"}}, "`run` must be one of .* did you mean 'protocol'"),
    ],
)
def test_a_change_that_makes_no_run_is_refused_with_its_cell(variant, message):
    with pytest.raises(ValueError, match=message):
        _ = plan(variants=[Variant("odd", **variant)]).cells


def test_a_variant_without_a_name_or_with_a_seed_of_its_own_is_refused():
    with pytest.raises(ValueError, match="`label` must say"):
        Variant(" ")
    with pytest.raises(ValueError, match="must not set 'seed': the plan does"):
        Variant("odd", run={"seed": 3})


def test_a_grid_waits_for_another_process_that_writes_and_keeps_its_cells(tmp_path):
    plan(seeds=[0]).write(tmp_path)
    ours = Thread(target=plan(seeds=[0, 2]).write, args=(tmp_path,))
    with (tmp_path / GRIDS_LOCK).open("ab") as other:
        lock_file(other, wait=True)
        ours.start()
        ours.join(0.5)
        assert ours.is_alive(), "it reads nothing while another writes"
        write_grid(tmp_path, plan(seeds=[0, 1]).grid_in(tmp_path))
    ours.join(60)
    cells = read_grid(tmp_path / "grids" / "question.json").cells
    assert sorted({cell.seed for cell in cells}) == [0, 1, 2]


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=r"results cannot be written .*--out.*file"):
        plan().write(tmp_path / "file" / "results")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_named(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError, match="results cannot be written"):
        plan().write(tmp_path / "results")


def test_cells_and_ids_are_computed_once(monkeypatch):
    asked = plan()
    assert asked.cells is asked.cells
    assert asked.grid is asked.grid
    run = asked.runs[0]
    wanted = run.id
    monkeypatch.setattr(RunConfig, "to_dict", lambda self: {})
    assert run.id == wanted
    assert replace(run, seed=9).id != wanted


def test_a_config_is_checked_once_however_many_seeds(monkeypatch):
    read = []
    whole = RunConfig.from_dict
    monkeypatch.setattr(RunConfig, "from_dict", lambda values: read.append(values) or whole(values))
    many = plan(seeds=40)
    assert len(many.cells) == 2 * 2 * 40
    assert len(read) == 2 * 2
    assert [cell.run for cell, _ in many.cells[:8]] == [cell.run for cell, _ in plan().cells]
