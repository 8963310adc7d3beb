import pytest
import torch
from torch import nn

from depthpde.insertion.family import Side, Tap, into, out_of
from depthpde.insertion.recorder import Recorder, tensor_at


class Two(nn.Module):
    def forward(self, u, mask=None, *, scale=1.0):
        return scale * u, mask


def test_reads_arguments_by_name_and_place_however_they_were_passed():
    model, seen = Two(), []
    with Recorder() as recorder:
        recorder.on_call(model, seen.append)
        model(1.0, mask=2.0)
        model(1.0, 2.0, scale=3.0)
    assert [(each.at(0), each.at(1), each.at(7)) for each in seen] == [(1.0, 2.0, None)] * 2
    assert [each.get("mask") for each in seen] == [2.0, 2.0]
    assert [each.get("scale") for each in seen] == [None, 3.0]


def test_reads_what_leaves_alone_or_beside_what_came():
    model, outputs, pairs = Two(), [], []
    with Recorder() as recorder:
        recorder.on_output(model, outputs.append)
        recorder.on_return(model, lambda given, output: pairs.append((given.at(0), output)))
        model(2.0, scale=2.0)
    assert outputs == [(4.0, None)]
    assert pairs == [(2.0, (4.0, None))]


def test_taps_are_tensors_of_either_side_or_a_part_of_one():
    block, seen = nn.ModuleDict({"two": Two()}), {}
    u = torch.arange(6.0).view(1, 1, 6)
    with Recorder() as recorder:
        taps = (into("two"), out_of("two"), out_of("two", part=(2, 3)))
        for k, tap in enumerate(taps):
            recorder.on_tap(block, tap, lambda tensor, k=k: seen.__setitem__(k, tensor))
        block["two"](u=u, scale=2.0)
    assert torch.equal(seen[0], u)
    assert torch.equal(seen[1], 2 * u)
    assert seen[2].flatten().tolist() == [8.0, 10.0]


def test_every_hook_leaves_also_after_an_exception():
    model = Two()
    recorder = Recorder()
    recorder.on_call(model, lambda given: None)
    recorder.on_output(model, lambda output: None)
    recorder.on_return(model, lambda given, output: None)
    assert len(model._forward_hooks) == 2
    with pytest.raises(TypeError), recorder:
        model()
    assert not model._forward_hooks
    assert not model._forward_pre_hooks


def test_refuses_what_is_no_tensor():
    with pytest.raises(ValueError, match=r"got dict.*of 'x'"):
        tensor_at(Tap("x", Side.OUTPUT), {})
