import pytest
import torch
from torch import nn

from depthpde.insertion.calling import call_model, check_has_weights, quiet


class Drawing(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.5)

    def forward(self, u, fail=None):
        torch.rand(3)
        if fail is not None:
            raise fail
        return self.drop(u)


@pytest.mark.parametrize("fail", [None, RuntimeError("broken")])
def test_modes_gradients_and_random_numbers_are_put_back(fail):
    model = nn.Sequential(Drawing(), Drawing().eval())
    state, modes = torch.get_rng_state(), [each.training for each in model.modules()]
    try:
        with quiet(model):
            assert not torch.is_grad_enabled()
            assert not any(each.training for each in model.modules())
            model[0](torch.ones(2), fail)
    except RuntimeError:
        assert fail is not None
    assert torch.is_grad_enabled()
    assert [each.training for each in model.modules()] == modes
    assert torch.equal(torch.get_rng_state(), state)


def test_a_batch_that_a_model_cannot_take_is_one_sentence_with_its_first_line():
    with pytest.raises(ValueError, match=r"`batch` must be .* KeyError .* 'a'; call") as caught:
        call_model(Drawing(), (torch.ones(2), KeyError("a")), {})
    assert isinstance(caught.value.__cause__, KeyError)
    with pytest.raises(ValueError, match=r"`inputs` must be .* TypeError"):
        call_model(Drawing(), (), {"other": 1}, name="inputs")
    with pytest.raises(ValueError, match="no reason"):
        call_model(Drawing(), (torch.ones(2), RuntimeError()), {})


def test_too_little_memory_is_no_fault_of_the_batch():
    with pytest.raises(MemoryError):
        call_model(Drawing(), (torch.ones(2), MemoryError()), {})


def test_other_weights_stand_in_for_one_call_only():
    model = nn.Linear(2, 2, bias=False)
    out = call_model(model, (torch.ones(1, 2),), {}, weights={"weight": torch.zeros(2, 2)})
    assert not out.any()
    assert model.weight.any()


@pytest.mark.parametrize("where", ["weight", "mean"])
def test_refuses_a_model_on_the_meta_device(where):
    model = nn.BatchNorm1d(2)
    if where == "weight":
        model = model.to("meta")
    else:
        model.running_mean = model.running_mean.to("meta")
    with pytest.raises(ValueError, match=f"got 'r?u?n?n?i?n?g?_?{where}' on the meta device"):
        check_has_weights(model, "testing")
