"""A run's name follows from its config and from nothing else."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch

from depthpde.models.config import ModelConfig
from depthpde.models.language import LanguageModel
from depthpde.models.vision import VisionTransformer
from depthpde.runs.run import RunConfig
from depthpde.runs.settings import build_run
from depthpde.simulator.config import SimulatorConfig
from depthpde.simulator.learned import Simulator
from depthpde.training.config import TrainingConfig
from depthpde.training.pretraining import PretrainingConfig


def test_a_config_comes_back_from_json_with_the_same_name(run):
    again = RunConfig.from_dict(json.loads(json.dumps(run.to_dict())))
    assert again == run
    assert again.id == run.id


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 1},
        {"task": "text-mini"},
        {"recipe": 99},
        {"training": TrainingConfig(updates=9, warmup=2)},
        {"model": ModelConfig(dim=8, blocks=1, positions=("between_blocks",))},
    ],
    ids=lambda change: next(iter(change)),
)
def test_another_config_has_another_name(run, change):
    open_again = replace(run.model, vocabulary=None, length=None, classes=None)
    assert replace(run, **{"model": open_again} | change).id != run.id


def test_a_setting_that_is_none_does_not_change_the_name(run):
    values = run.to_dict()
    output = json.loads(json.dumps(values))
    del output["model"]["hidden"], output["model"]["route"]
    assert values["model"]["hidden"] is None
    assert RunConfig.from_dict(output).id == run.id


def test_what_the_task_knows_may_be_said_or_left_out(run):
    output = replace(run, model=replace(run.model, vocabulary=16))
    assert output.id == run.id


def test_the_training_has_the_seed_of_the_run(run):
    assert replace(run, seed=7).training.seed == 7


def test_shared_parameters_of_one_seed_start_alike_whatever_is_placed(run):
    bare = replace(run, model=replace(run.model, positions=())).build().state_dict()
    placed = run.build().state_dict()
    assert set(bare) < set(placed)
    for name, value in bare.items():
        assert torch.equal(value, placed[name]), name
    other = replace(run, seed=1).build().state_dict()
    assert not torch.equal(other["head.weight"], placed["head.weight"])


def test_the_model_is_that_of_the_task():
    training = TrainingConfig()
    language = RunConfig(task="enwik8-mini", model=ModelConfig(dim=8), training=training)
    assert isinstance(language.build(), LanguageModel)
    patches = RunConfig(
        task="image-mini", model=ModelConfig(dim=8, input="patch"), training=training
    )
    assert isinstance(patches.build(), VisionTransformer)


def test_a_run_is_called_by_what_is_placed_where(run):
    assert run.label == "after_embedding"
    assert replace(run, model=replace(run.model, positions=())).label == "baseline"
    mixed = replace(run.model, layer="multiscale", positions=("after_embedding", "after_ffn"))
    assert replace(run, model=mixed).label == "after_embedding multiscale + after_ffn multiscale"


def test_the_blocks_of_a_simulator_are_integrated_and_begin_as_those_of_the_transformer(run):
    bare = replace(run, model=replace(run.model, positions=()))
    simulated = replace(bare, simulator=SimulatorConfig(method="strang"))
    assert isinstance(simulated.build(), Simulator)
    assert simulated.id != bare.id
    assert simulated.label == "simulator, strang"
    assert RunConfig.from_dict(simulated.to_dict()) == simulated
    ours, theirs = simulated.build().state_dict(), bare.build().state_dict()
    assert all(torch.equal(ours[name], value) for name, value in theirs.items())


def test_pretraining_is_part_of_the_run(run):
    before = replace(run, pretraining=PretrainingConfig(updates=10))
    assert before.id != run.id
    assert before.label == "after_embedding + masked pretraining"
    assert RunConfig.from_dict(before.to_dict()) == before


def test_refuses_a_pretraining_that_the_model_cannot_have(run):
    with pytest.raises(ValueError, match="left out for language tasks and patch inputs"):
        RunConfig(
            task="enwik8-mini", model=ModelConfig(dim=8), training=run.training,
            pretraining=PretrainingConfig(),
        )  # fmt: skip
    with pytest.raises(ValueError, match="left out for a simulator"):
        replace(run, pretraining=PretrainingConfig(), simulator=SimulatorConfig())


def test_refuses_windows_where_nothing_attends(run):
    model = ModelConfig(dim=8, blocks=1, interaction="lstm")
    with pytest.raises(ValueError, match=r"`windows` must be left out.*'lstm'"):
        replace(run, model=model, windows=(8,))


def test_refuses_unknown_names_with_the_nearest(run):
    with pytest.raises(ValueError, match="did you mean 'listops-mini'"):
        replace(run, task="listop-mini")
    with pytest.raises(ValueError, match="did you mean 'training'"):
        RunConfig.from_dict({**run.to_dict(), "trainings": {}})


def test_refuses_a_config_that_lacks_its_parts(run):
    with pytest.raises(ValueError, match="must have model, training"):
        RunConfig.from_dict({"task": "listops-mini"})


@pytest.mark.parametrize("name", ["dropout", "attention_dropout"])
def test_a_whole_number_is_the_same_run_as_its_decimal(run, name):
    whole, decimal = (replace(run, model=replace(run.model, **{name: n})) for n in (0, 0.0))
    assert whole.id == decimal.id == run.id


def test_one_thread_is_the_default_and_changes_no_name_and_two_are_another_run(run):
    assert replace(run, threads=1) == run
    assert replace(run, threads=2).id != run.id
    with pytest.raises(ValueError, match=r"threads.*0"):
        replace(run, threads=0)


@pytest.mark.parametrize(
    ("name", "task", "kind"),
    [
        ("examples", "retrieval-mini", "pair"),
        ("corruption", "retrieval-mini", "pair"),
        ("shuffles", "wikitext2-mini", "language"),
    ],
)
def test_a_reading_that_a_task_cannot_have_is_refused_before_it_is_trained(name, task, kind):
    """It was found out when the training had ended."""
    with pytest.raises(ValueError, match=f"`{name}` must be of sequence .* a {kind} task"):
        build_run(task, settings={name: 8 if name == "examples" else [1]})


def test_windows_are_refused_where_the_weights_of_attention_are_formed():
    placed = {"position": "in_attention", "option": "weights"}
    settings = {"model.positions": [placed], "windows": [4]}
    with pytest.raises(ValueError, match="`windows` must be left out where something is placed"):
        build_run("listops-mini", settings=settings)
