"""The stabilizers switched off two by two: the same first weights, the same size."""

import pytest
import torch

from depthpde.layers.stabilizer import Stabilizer
from depthpde.models.config import ModelConfig
from depthpde.papers.ablation.variants import (
    LOOKS,
    NEITHER,
    NO_NORM,
    NO_RESIDUAL,
    SIMULATOR,
    STABILIZERS,
    SYSTEMS,
    TRANSFORMER,
    shape,
)
from depthpde.papers.measurements.observation import Observation
from depthpde.papers.registry import EXPERIMENTS
from depthpde.records.statistics.paired import too_few
from depthpde.runs.run import RunConfig
from depthpde.sweeps.scale import Scale
from papers.tiny import tiny_plan

PAPER_B = ("stabilization", "depth_limit", "discretization", "architectures")


def test_all_variants_start_from_the_same_matrices():
    models = {run.label + str(run.model.stability): run.build() for run in tiny_plan().runs}
    assert len(models) == 8
    first = next(iter(models.values())).state_dict()
    for model in models.values():
        state = model.state_dict()
        shared = [name for name in state if name in first and "norm" not in name]
        assert len(shared) > 20
        assert all(torch.equal(state[name], first[name]) for name in shared)


def test_both_systems_are_of_one_size_but_for_the_diffusivity():
    sizes = {}
    for system in SYSTEMS:
        run: RunConfig = tiny_plan(systems=(system,)).runs[0]
        sizes[system] = sum(each.numel() for each in run.build().parameters())
    assert sizes[SIMULATOR] - sizes[TRANSFORMER] == 2 * 8, "one number a feature and block"


def test_a_whole_task_has_a_larger_model():
    made = shape(Scale.FULL, ["listops"])
    assert made["listops"].model.blocks == 6
    assert made["listops"].training.updates == 10_000


def test_the_settings_are_those_of_a_stabilizer_in_full():
    wanted = {
        NO_RESIDUAL: Stabilizer(residual=False),
        NO_NORM: Stabilizer(norm="none"),
        NEITHER: Stabilizer(norm="none", residual=False),
        "both": Stabilizer(),
    }
    found = {name: ModelConfig(stabilizer=each).stability for name, each in STABILIZERS.items()}
    assert found == wanted
    names = {"norm", "kind", "residual", "deepnorm"}
    assert all(set(each) == names for each in STABILIZERS.values())


def test_a_mini_scale_looks_at_as_much_as_an_observation_does_by_itself():
    assert Observation(**LOOKS[Scale.MINI]) == Observation()


@pytest.mark.parametrize("scale", [Scale.MINI, Scale.FULL])
@pytest.mark.parametrize("name", PAPER_B)
def test_as_many_seeds_as_can_be_significant_are_taken(name, scale):
    assert too_few(EXPERIMENTS[name].seeds[scale]) is None
