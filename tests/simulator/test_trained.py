import pytest
import torch

from depthpde.models.classifier import Classifier
from depthpde.models.config import ModelConfig
from depthpde.simulator.simulate import simulate
from depthpde.simulator.trained import _examples, model_system, trained
from depthpde.simulator.transcribe import follow
from depthpde.simulator.work_precision import work_precision


def a_model():
    config = ModelConfig(dim=8, heads=2, blocks=2, vocabulary=7, length=10, classes=3)
    return Classifier(config, generator=torch.Generator().manual_seed(1)).double().eval()


def test_the_small_transformer_is_trained_on_its_rule():
    system = trained(blocks=1, tokens=6, updates=3)
    assert system.vary(updates=0).parameters["updates"] == 0.0
    start = trained(blocks=1, tokens=6, updates=0)
    assert not torch.equal(system.u0, start.u0), "the embedding was trained"
    inputs, labels = _examples(6, 200, torch.Generator().manual_seed(0))
    counts = (inputs == 1).sum(1) - (inputs == 0).sum(1)
    assert torch.equal(labels.bool(), counts > 0)


def test_a_models_own_equation_is_followed_from_its_field():
    model, tokens = a_model(), torch.randint(7, (2, 10), generator=torch.Generator().manual_seed(2))
    system = model_system(model, tokens)
    own, _ = follow(model, tokens)
    assert torch.equal(system.u0, own.states[0])
    assert (system.times[0], system.times[-1]) == (0.0, 2.0)
    lie, order = system.known(simulate(system, rtol=1e-8))
    assert lie.agrees
    assert order.agrees
    assert system.vary() is system
    with pytest.raises(ValueError, match="`parameters` must be one of"):
        system.vary(blocks=3)


def test_the_wrong_equation_would_be_seen():
    tokens = torch.randint(7, (1, 10), generator=torch.Generator().manual_seed(2))
    system = model_system(a_model(), tokens)
    with torch.no_grad():
        other = simulate(system.equation.without("reaction"), system.u0, system.times, rtol=1e-6)
    assert not system.known(other)[1].agrees


def test_work_against_precision_is_drawn_for_a_models_equation_too():
    system = model_system(a_model(), torch.zeros(1, 10, dtype=torch.long))
    methods = ("tsit5", "lie")
    points, floor = work_precision(system.equation, system.u0, system.times, methods=methods)
    assert floor < 1e-7
    lie = [point.error for point in points if point.method == "lie"]
    assert lie[0] > lie[-1] > min(point.error for point in points)


@pytest.mark.parametrize("wrong", [{"blocks": 0}, {"tokens": 1}, {"updates": -1}])
def test_refuses_sizes_that_nothing_can_be_built_of(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        trained(**wrong)
