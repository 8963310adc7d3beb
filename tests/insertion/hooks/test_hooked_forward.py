"""A forward that stands in for a module's own: order, exceptions, copies, and the way back."""

import copy
import inspect
import pickle

import pytest
import torch
from torch import nn

from depthpde.insertion.hooks.hooked_forward import HookedForward, hooked_forward
from depthpde.insertion.insert import insert
from insertion.zoo import ZOO, tokens


class Scaled(nn.Module):
    """A module whose result shows whose parameter was read."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, u, *, shift=0.0):
        """Scale and shift."""
        return self.scale * u + shift


class Notes:
    """Writes down what begins and ends."""

    def __init__(self, name, notes, fails=False):
        self.name, self.notes, self.fails = name, notes, fails

    def begin(self, args, kwargs):
        self.notes.append(f"{self.name} begins with {len(args)} and {sorted(kwargs)}")
        if self.fails:
            raise ValueError("on purpose")

    def end(self):
        self.notes.append(f"{self.name} ends")


def doubled(out):
    return 2 * out


def test_hooks_act_in_turn_inside_everything_that_begins():
    module, notes = Scaled(), []
    forward = hooked_forward(module)
    forward.around += [Notes("a", notes), Notes("b", notes)]
    forward.behind += [doubled, lambda out: (notes.append("hook"), out + 1)[1]]
    assert module(torch.tensor(3.0), shift=1.0).item() == 15
    begins = [f"{name} begins with 1 and ['shift']" for name in "ab"]
    assert notes == [*begins, "hook", "a ends", "b ends"]


def test_whatever_began_ends_behind_an_exception_and_nothing_else_does():
    module, notes = Scaled(), []
    forward = hooked_forward(module)
    forward.around += [Notes("a", notes), Notes("b", notes, fails=True), Notes("c", notes)]
    with pytest.raises(ValueError, match="on purpose"):
        module(torch.tensor(3.0))
    assert [note for note in notes if "ends" in note] == ["a ends", "b ends"]


def test_one_stands_in_for_a_module_and_leaves_with_its_last_hook():
    module = Scaled()
    forward = hooked_forward(module)
    assert hooked_forward(module) is forward
    forward.behind.append(doubled)
    forward.leave()
    assert module.forward is forward, "a hook is still there"
    forward.behind.remove(doubled)
    forward.leave()
    assert "forward" not in vars(module)


def test_a_forward_that_somebody_exchanged_before_is_called_and_comes_back():
    module = Scaled()
    module.forward = lambda u: u - 1
    theirs = module.forward
    forward = hooked_forward(module)
    forward.behind.append(doubled)
    assert module(torch.tensor(3.0)).item() == 4
    forward.behind.clear()
    forward.leave()
    assert module.forward is theirs


def test_one_that_somebody_wrapped_stays_and_does_nothing():
    module = Scaled()
    forward = hooked_forward(module)
    module.forward = wrapped = lambda u: forward(u)
    forward.leave()
    assert module.forward is wrapped
    assert module(torch.tensor(3.0)).item() == 6


@pytest.mark.parametrize("again", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_a_copy_runs_on_its_own_parameters(again):
    module = Scaled()
    hooked_forward(module).behind.append(doubled)
    other = again(module)
    with torch.no_grad():
        module.scale.fill_(100.0)
    assert isinstance(other.forward, HookedForward)
    assert other(torch.tensor(3.0)).item() == 12


@pytest.mark.parametrize("exchanged", [False, True])
def test_it_shows_the_signature_of_the_forward_it_stands_for(exchanged):
    module, plain = Scaled(), Scaled()
    if exchanged:
        module.forward = plain.forward
    hooked_forward(module)
    assert inspect.signature(module.forward) == inspect.signature(plain.forward)
    with pytest.raises(AttributeError, match="absent"):
        module.forward.absent  # noqa: B018


def test_a_decoder_is_hooked_at_its_forward_and_as_it_was_afterwards():
    model = ZOO["gpt2"].build()
    plain = model(tokens()).logits
    inserted = [insert(model, "after_ffn", initial_ratio=0.2)]
    assert isinstance(model.transformer.h[0].forward, HookedForward)
    assert isinstance(model.transformer.h[0].mlp.forward, HookedForward)
    # what enters the block is hooked by torch, in front of what others hook there
    inserted.append(insert(model, "before_norm", route="stream", initial_ratio=0.2))
    assert not model.transformer.h[0].forward.around
    for each in inserted:
        each.remove()
    assert not any("forward" in vars(each) for each in model.modules())
    assert torch.equal(model(tokens()).logits, plain)
