import pytest

from depthpde.simulator.config import SimulatorConfig


def test_plain_values_and_back():
    config = SimulatorConfig(method="rk4", steps=3, weights="interpolated", diffusion=0.2)
    values = config.to_dict()
    assert values == {
        "method": "rk4", "steps": 3, "weights": "interpolated", "diffusion": 0.2,
        "projection": False,
    }  # fmt: skip
    assert all(type(each) in (str, int, float, bool) for each in values.values())
    assert SimulatorConfig.from_dict(values) == config


def test_a_whole_number_is_kept_as_a_float():
    assert repr(SimulatorConfig(method="strang", diffusion=1).to_dict()["diffusion"]) == "1.0"


def test_the_bound_lets_no_mode_of_an_explicit_step_flip():
    assert SimulatorConfig(method="euler").bound == 0.25
    assert SimulatorConfig(method="euler", steps=2).bound == 0.5
    assert SimulatorConfig(method="euler", steps=99).bound == 1.0
    assert SimulatorConfig(method="lie").bound == 0.25
    assert SimulatorConfig(method="strang").bound == 1.0
    assert SimulatorConfig(method="backward_euler").bound == 1.0


def test_refuses_a_diffusivity_beyond_the_bound():
    with pytest.raises(ValueError, match=r"`diffusion` must lie in \[0, 0.25\], got 0.3; euler"):
        SimulatorConfig(method="euler", diffusion=0.3)


def test_refuses_a_projection_that_is_neither_true_nor_false():
    with pytest.raises(ValueError, match="`projection` must be True or False, got 'yes'"):
        SimulatorConfig(projection="yes")


def test_refuses_an_unknown_method_and_names_the_nearest():
    with pytest.raises(ValueError, match=r"`method` must be one of .*did you mean 'strang'"):
        SimulatorConfig(method="strangg")


def test_refuses_an_unknown_key():
    with pytest.raises(ValueError, match="step"):
        SimulatorConfig.from_dict({"step": 3})
