import pytest

from depthpde.simulator.phase import phase
from depthpde.simulator.systems import SYSTEMS


def cosine(u):
    return float(u[0, 0] @ u[0, 1])


def test_a_diagram_is_labelled_and_each_point_is_that_of_the_system():
    system = SYSTEMS["equiangular"].vary(end=1.0)
    diagram = phase(system, {"beta": [1.0, 4.0], "tokens": [3, 6]}, cosine)
    assert len(diagram.rows()) == 4
    assert diagram.rows()[1] == {"beta": 1.0, "tokens": 6.0, "value": diagram.values[1]}
    assert diagram.at(beta=4.0, tokens=3.0) == diagram.values[2]
    alone = phase(system.vary(beta=4.0), {"tokens": [3]}, cosine)
    assert alone.values[0] == pytest.approx(diagram.values[2])
    axes = diagram.plot()
    assert axes.get_xlabel() == "tokens"
    assert alone.plot().get_xlabel() == "tokens"


def test_refuses_nothing_and_what_is_not_there():
    system = SYSTEMS["equiangular"].vary(end=0.5)
    with pytest.raises(ValueError, match="`over` must name at least one parameter"):
        phase(system, {}, cosine)
    with pytest.raises(ValueError, match=r"`parameters` must be one of beta"):
        phase(system, {"bta": [1.0]}, cosine)
    diagram = phase(system, {"beta": [1.0]}, cosine)
    with pytest.raises(ValueError, match=r"a combination of the diagram, got \{'beta': 2.0\}"):
        diagram.at(beta=2.0)
