import math

import pytest
import torch

from depthpde.simulator.simulate import simulate
from depthpde.simulator.system import Known
from depthpde.simulator.systems import BUILDERS, SYSTEMS


@pytest.mark.parametrize("name", SYSTEMS)
def test_what_is_known_of_a_system_is_what_it_computes(name):
    system = SYSTEMS[name]
    with torch.no_grad():
        path = simulate(system.equation, system.u0, system.times, rtol=1e-6)
    known = system.known(path)
    assert known
    for each in known:
        assert each.agrees, each
    assert system.title.endswith(".")


def test_a_wrong_number_would_be_seen():
    assert not Known(quantity="x", predicted=1.0, computed=2.0, tolerance=0.5).agrees
    assert not Known(quantity="x", predicted=1.0, computed=math.nan, tolerance=0.5).agrees
    system = SYSTEMS["equiangular"]
    path = simulate(system.equation, system.u0, system.times)
    assert not system.vary(beta=5.0).known(path)[0].agrees
    fisher = SYSTEMS["fisher"]
    front = simulate(fisher.equation, fisher.u0, fisher.times, rtol=1e-5)
    assert not any(each.agrees for each in fisher.vary(growth=2.0).known(front))


def test_a_parameter_can_be_varied_and_an_unknown_one_is_refused():
    system = SYSTEMS["clustering"].vary(tokens=5, beta=9.0)
    assert system.u0.shape == (1, 5, 3)
    assert system.parameters["beta"] == 9.0
    with pytest.raises(ValueError, match=r"`parameters` must be one of beta.*'beta'"):
        SYSTEMS["clustering"].vary(beat=1.0)


def test_the_gallery_is_a_mapping_of_its_builders():
    assert list(SYSTEMS) == list(BUILDERS)
    assert len(SYSTEMS) == len(BUILDERS) >= 9
    assert SYSTEMS["turing"].name == "turing"


def test_attention_changes_a_front():
    plain, attended = (
        SYSTEMS["fisher"].vary(attention=strength, end=8.0) for strength in (0.0, 0.3)
    )
    paths = [
        simulate(each.equation, each.u0, (0.0, 8.0), rtol=1e-5).final for each in (plain, attended)
    ]
    assert float((paths[0] - paths[1]).norm()) > 0.1
