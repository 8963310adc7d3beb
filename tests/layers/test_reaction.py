import peft
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.modules.module import register_module_forward_hook

from depthpde.layers.reaction import Activation, FeedForward, Linear
from depthpde.operators import linear_map as linear_module


@pytest.mark.parametrize("activation", list(Activation))
def test_every_activation_is_the_one_of_its_name(activation):
    u = torch.linspace(-3, 3, 31, dtype=torch.float64)
    assert torch.equal(activation(u), getattr(F, activation.value)(u))


def test_feed_forward_is_two_maps_with_a_nonlinearity_between():
    layer = FeedForward(4, 7, activation="relu", dtype=torch.float64)
    u = torch.randn(2, 3, 4, dtype=torch.float64)
    wanted = nn.Sequential(layer.enter, nn.ReLU(), layer.out)(u)
    torch.testing.assert_close(layer(u), wanted, rtol=0, atol=1e-13)


@pytest.mark.parametrize("activation", list(Activation))
def test_adapters_on_either_map_act_and_learn(activation):
    class Whole(nn.Module):
        def __init__(self):
            super().__init__()
            self.reaction = FeedForward(16, 32, activation=activation)

        def forward(self, u):
            return self.reaction(u)

    u, model = torch.randn(8, 64, 16), Whole()
    plain = model(u).detach()
    config = peft.LoraConfig(r=2, target_modules=["enter", "out"], init_lora_weights=False)
    adapted = peft.get_peft_model(model, config)
    out = adapted(u)
    assert not torch.allclose(out, plain)
    out.square().sum().backward()
    learned = {n: p.grad for n, p in adapted.named_parameters() if p.requires_grad}
    assert len(learned) == 4
    assert all(grad is not None and grad.abs().sum() > 0 for grad in learned.values())
    merged = adapted.merge_and_unload()
    torch.testing.assert_close(merged(u), out, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("name", ["enter", "out"])
def test_hooks_and_a_forward_of_its_own_are_called(name):
    layer, u, seen = FeedForward(16, 32), torch.randn(8, 64, 16), []
    part = getattr(layer, name)
    before = layer(u)
    for register in (
        part.register_forward_hook,
        part.register_forward_pre_hook,
        part.register_full_backward_hook,
        part.register_full_backward_pre_hook,
        register_module_forward_hook,
    ):
        handle = register(lambda module, *_: seen.append(module))
        layer(u.requires_grad_()).sum().backward()
        assert part in seen, register
        handle.remove()
        seen.clear()
    part.forward = lambda given: nn.Linear.forward(part, given) + 1.0
    assert not torch.allclose(layer(u), before)
    del part.forward
    assert torch.equal(layer(u), before)


def test_a_hook_changes_no_bit_where_fast_paths_are_off():
    layer, u = FeedForward(16, 32), torch.randn(8, 64, 16)
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        plain = layer(u)
        layer.enter.register_forward_hook(lambda *_: None)
        assert torch.equal(layer(u), plain)
    finally:
        torch.backends.mha.set_fastpath_enabled(before)
    assert torch.equal(layer(u), plain), "a hooked map is called whatever the switch says"


def test_nothing_passes_between_sites():
    layer = FeedForward(4, 8, dtype=torch.float64)
    u = torch.randn(1, 5, 4, dtype=torch.float64)
    changed = u.clone()
    changed[:, 2] += 1
    same = (layer(u) == layer(changed)).all(dim=-1)[0]
    assert same.tolist() == [True, True, False, True, True]


def test_refuses_what_it_does_not_know():
    with pytest.raises(ValueError, match=r"`activation` must be one of gelu.*did you mean 'gelu'"):
        FeedForward(4, 8, activation="glu")
    with pytest.raises(ValueError, match=r"`hidden`.*1.*got 0"):
        FeedForward(4, 0)
    with pytest.raises(ValueError, match=r"`u` must have 4 features"):
        FeedForward(4, 8)(torch.zeros(1, 2, 3))


def test_says_which_nonlinearity_it_has():
    assert "activation=silu" in repr(FeedForward(4, 8, activation="silu"))


def test_linear_has_torchs_parameters_start_and_values():
    layers = []
    for kind in (Linear, nn.Linear):
        torch.manual_seed(0)
        layers.append(kind(16, 32))
    ours, theirs = layers
    assert isinstance(ours, nn.Linear)
    assert repr(ours) == repr(theirs)
    assert all(torch.equal(ours.state_dict()[k], v) for k, v in theirs.state_dict().items())
    u = torch.randn(2, 10, 16)
    assert torch.equal(ours(u), theirs(u)), "small products are torch's own on every processor"


def test_a_hook_sees_what_another_library_made(monkeypatch):
    for name, value in (("FASTER", True), ("LEAST", 1)):
        monkeypatch.setattr(linear_module, name, value)
    layer, seen = Linear(16, 32), []
    layer.register_forward_hook(lambda *given: seen.append(given[-1]))
    u = torch.randn(2, 64, 16)
    assert torch.equal(layer(u), seen[0])
    torch.testing.assert_close(seen[0], nn.functional.linear(u, layer.weight, layer.bias))
