from dataclasses import replace

import pytest
import torch

from depthpde.data.protocol import PROTOCOLS, STRICT
from depthpde.data.tasks import TASKS
from depthpde.models.cost import cost
from depthpde.runs.presets import PRESETS, preset
from depthpde.runs.run import RunConfig
from depthpde.training.schedule import Schedule, rate

ALL = [(name, task) for name, tasks in PRESETS.items() for task in tasks]
SOURCES = [name for name in PRESETS if name != "mini"]


def run_of(name, task, protocol=STRICT):
    found = preset(name, task)
    return RunConfig(task=task, model=found.model, training=found.training, protocol=protocol)


@pytest.mark.parametrize(("name", "task"), ALL)
def test_every_preset_makes_a_run_that_can_be_built_and_survives_json(name, task):
    run = run_of(name, task)
    assert RunConfig.from_dict(run.to_dict()) == run
    with torch.device("meta"):
        model = run.build()
    counted = sum(each.numel() for each in model.parameters())
    head = "language" if TASKS[task].kind == "language" else "classifier"
    assert counted == cost(run.model, head=head).parameters.total


@pytest.mark.parametrize(("name", "task"), [each for each in ALL if each[0] != "mini"])
def test_a_source_fits_the_data_of_its_own_protocol_and_says_what_it_leaves_out(name, task):
    found = preset(name, task)
    if name in PROTOCOLS:
        run = run_of(name, task, name)
        assert run.model.length >= run.about.length
        assert any(f"--protocol {name}" in note for note in found.notes)
    assert len(found.notes) >= 3
    assert all(len(note) > 10 for note in found.notes)


@pytest.mark.parametrize("name", SOURCES)
def test_every_source_speaks_of_the_five_tasks_of_the_arena(name):
    assert {"listops", "text", "retrieval", "image", "pathfinder"} <= PRESETS[name].keys()


def test_mini_speaks_of_every_mini_task_and_of_no_other():
    longer = {"listops-1000"}  # paper B's length at mini's width
    assert PRESETS["mini"].keys() == {task.name for task in TASKS.values() if task.mini} | longer


@pytest.mark.parametrize("task", PRESETS["mini"])
def test_a_mini_run_is_one_of_minutes_on_a_core(task):
    run = run_of("mini", task)
    assert (run.model.dim, run.model.blocks) == (32, 2)
    # An update is a forward and a backward pass of twice its cost; to judge is a forward pass.
    looks = run.training.updates // run.training.evaluate_every
    judged = looks * TASKS[task].splits["validation"] + TASKS[task].splits["test"]
    if TASKS[task].kind == "language":
        judged //= TASKS[task].length
    passes = 3 * run.training.updates * run.training.batch_size + judged
    head = "language" if TASKS[task].kind == "language" else "classifier"
    usual = {"listops-mini": 64}.get(task)  # up to 256, but 45 on the average
    forward = cost(run.model, head=head, length=usual).multiply_adds.total
    seconds = 360 if task == "listops-1000" else 120
    assert 2 * forward * passes <= seconds * 30e9, "of a core at 30 GFLOP/s"


def peak(name, task):
    training = preset(name, task).training
    settings = {"updates": training.updates, "warmup": training.warmup, "floor": training.floor}
    rates = [
        rate(Schedule(training.schedule), update, **settings)
        for update in range(0, training.updates, max(1, training.updates // 5000))
    ]
    return training.learning_rate * max(rates)


@pytest.mark.parametrize(
    ("task", "wanted"),
    [("listops", 1.6e-3), ("text", 5.6e-4), ("retrieval", 3.5e-4), ("image", 5e-4)],
)
def test_the_peak_of_lra_2020_is_the_published_one(task, wanted):
    assert peak("lra-2020", task) == pytest.approx(wanted, rel=0.02)


def test_the_unfinished_warmup_of_lra_2020_is_the_same_line():
    training = preset("lra-2020", "retrieval").training
    settings = {"updates": 5000, "warmup": training.warmup, "floor": 0.0}
    for update in (0, 999, 4998):
        ours = training.learning_rate * rate(Schedule.RSQRT, update, **settings)
        assert ours == pytest.approx(0.05 * (update + 1) / 8000 / 8000**0.5)


def test_parameters_are_as_many_as_a_user_of_lra_2020_counted():
    model = run_of("lra-2020", "retrieval").model
    assert cost(model).parameters.total == pytest.approx(1.09e6, rel=0.01)


def test_only_amos_pretrains_and_hides_what_the_paper_hid():
    shares = {task: each.pretraining.share for task, each in PRESETS["amos-2023"].items()}
    assert shares["image"] == shares["pathfinder"] == 0.5
    assert (shares["text"], shares["listops"]) == (0.15, 0.1)
    others = [each for name in PRESETS if name != "amos-2023" for each in PRESETS[name].values()]
    assert all(each.pretraining is None for each in others)


def test_every_pretraining_makes_a_stage():
    for each in PRESETS["amos-2023"].values():
        stage = each.pretraining.stage(each.training)
        assert stage == replace(
            each.training,
            updates=each.pretraining.updates,
            warmup=5000,
            keep="last",
            schedule="constant",
            learning_rate=each.pretraining.learning_rate or each.training.learning_rate,
        )


def test_refuses_an_unknown_preset_and_names_the_nearest():
    with pytest.raises(ValueError, match=r"`preset` must be one of mini.*did you mean 'lra-2020'"):
        preset("lra2020", "listops")


def test_refuses_what_is_no_task_and_names_the_nearest():
    with pytest.raises(ValueError, match=r"`task` must be one of.*did you mean 'listops-mini'"):
        preset("mini", "listop-mini")


def test_refuses_a_task_that_a_preset_says_nothing_about():
    with pytest.raises(ValueError, match=r"`preset` 'mini' must be of a task it knows, got 'text'"):
        preset("mini", "text")
