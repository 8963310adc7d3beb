import pytest

from depthpde.simulator import phase as phase_file
from depthpde.simulator.phase import phase
from depthpde.simulator.simulate import simulate
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
    assert alone.values[0] == pytest.approx(diagram.values[2], abs=1e-5)
    axes = diagram.plot()
    assert axes.get_xlabel() == "tokens"
    assert alone.plot().get_xlabel() == "tokens"


def test_parameters_of_the_equation_are_samples_of_one_batch(monkeypatch):
    runs = []
    monkeypatch.setattr(
        phase_file, "simulate", lambda *a, **k: runs.append(a[1].shape) or simulate(*a, **k)
    )
    system = SYSTEMS["clustering"].vary(end=2.0, tokens=6)
    over = {"beta": [1.0, 8.0], "diffusion": [0.0, 0.5], "dim": [2, 3]}
    diagram = phase(system, over, cosine)
    assert runs == [(4, 6, 2), (4, 6, 3)], "what changes the shape takes a run of its own"
    for row in diagram.rows():
        value = row.pop("value")
        alone = system.vary(**row)
        final = simulate(alone.equation, alone.u0, (0.0, 2.0)).final
        assert value == pytest.approx(cosine(final), abs=1e-4)
    fronts = phase(
        SYSTEMS["fisher"].vary(end=2.0), {"attention": [0.0, 0.3], "growth": [0.5, 1.0]},
        lambda u: float(u.mean()),
    )  # fmt: skip
    assert len(set(fronts.values)) == 4


def test_refuses_nothing_and_what_is_not_there():
    system = SYSTEMS["equiangular"].vary(end=0.5)
    with pytest.raises(ValueError, match="`over` must name at least one parameter"):
        phase(system, {}, cosine)
    with pytest.raises(ValueError, match=r"`parameters` must be one of beta"):
        phase(system, {"bta": [1.0]}, cosine)
    diagram = phase(system, {"beta": [1.0]}, cosine)
    with pytest.raises(ValueError, match=r"a combination of the diagram, got \{'beta': 2.0\}"):
        diagram.at(beta=2.0)
