"""The state of a call belongs to the call: threads, nesting, checkpointing, exceptions."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from depthpde.insertion.family import Family, NormOrder, into, out_of
from depthpde.insertion.hooks.call import Running
from depthpde.insertion.hooks.container import PREFIX
from depthpde.insertion.insert import insert
from insertion.zoo import BATCH, DIM, LENGTH, ZOO, padding, tokens

BLOCK = {"bert": "encoder.layer.0", "gpt2": "transformer.h.0", "llama": "model.layers.0"}
INNER = {"bert": "intermediate", "gpt2": "mlp", "llama": "mlp"}
WAIT = 20
"""Seconds after which a thread that meets nobody gives up."""


def inserted_model(name):
    model = ZOO[name].build()
    insert(model, "after_ffn", initial_ratio=0.2)
    insert(model, "after_attention", route="stream", initial_ratio=0.2)
    return model


def two_masks(name):
    return padding(left=ZOO[name].causal), torch.ones(BATCH, LENGTH, dtype=torch.bool)


def answer(name, model, mask):
    with torch.no_grad():
        return ZOO[name].call(model, tokens(), mask)


def running_calls(model):
    return [hooks.running.call for hooks in getattr(model, PREFIX).block_hooks]


@pytest.mark.parametrize("name", BLOCK)
def test_two_threads_inside_one_block_keep_their_masks_apart(name):
    model, masks = inserted_model(name), two_masks(name)
    want = [answer(name, model, mask) for mask in masks]
    meet = threading.Barrier(2)
    inner = model.get_submodule(BLOCK[name]).get_submodule(INNER[name])
    inner.register_forward_pre_hook(lambda module, args: (meet.wait(WAIT), None)[1])
    with ThreadPoolExecutor(2) as pool:
        got = list(pool.map(lambda mask: answer(name, model, mask), masks))
    assert not torch.equal(*want)
    torch.testing.assert_close(got, want, rtol=0, atol=1e-6)


@pytest.mark.drill
@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_eight_hundred_calls_of_four_threads_are_all_right(name, tally):
    model, masks = inserted_model(name), two_masks(name)
    want = [answer(name, model, mask) for mask in masks]

    def work(k):
        gaps = []
        for call in range(200):
            which = (k + call) % 2
            gaps.append((answer(name, model, masks[which]) - want[which]).abs().max())
        return torch.stack(gaps)

    with ThreadPoolExecutor(4) as pool:
        gaps = torch.cat(list(pool.map(work, range(4))))
    assert gaps.shape == (800,)
    assert int((gaps > 1e-5).sum()) == 0
    tally("Calls of one model by four threads with two masks", 800, "every output is its mask's")


@pytest.mark.drill
def test_threads_of_a_compiled_model_keep_their_masks_apart_across_a_graph_break():
    model, masks = inserted_model("bert"), two_masks("bert")
    want = [answer("bert", model, mask) for mask in masks]
    meet = threading.Barrier(2)

    @torch.compiler.disable
    def wait(module, args):
        meet.wait(WAIT)

    model.encoder.layer[0].intermediate.register_forward_pre_hook(wait)
    compiled = torch.compile(model, backend="eager")
    with ThreadPoolExecutor(2) as pool:
        got = list(pool.map(lambda mask: answer("bert", compiled, mask), masks))
    torch.compiler.reset()
    torch.testing.assert_close(got, want, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", BLOCK)
def test_a_block_called_inside_itself_goes_on_with_its_own_mask(name):
    model, masks = inserted_model(name), two_masks(name)
    want = [answer(name, model, mask) for mask in masks]
    inner = model.get_submodule(BLOCK[name]).get_submodule(INNER[name])
    nested = []

    def again(module, args):
        if not nested:
            nested.append(None)  # once
            nested[0] = answer(name, model, masks[1])

    inner.register_forward_pre_hook(again)
    torch.testing.assert_close(answer(name, model, masks[0]), want[0], rtol=0, atol=1e-6)
    torch.testing.assert_close(nested[0], want[1], rtol=0, atol=1e-6)


def loss(model, mask, run=lambda block, *given: block(*given)):
    u = model.embeddings(tokens())
    bias = torch.where(mask, 0.0, -1e9)[:, None, None]
    for block in model.encoder.layer:
        u = run(block, u, bias)
    return u.square().sum()


@pytest.mark.parametrize("reentrant", [False, True])
def test_two_recomputations_on_two_threads_keep_their_masks_apart(reentrant):
    def recomputed(block, *given):
        return checkpoint(block, *given, use_reentrant=reentrant)

    model, masks = inserted_model("bert"), two_masks("bert")
    weight = model.embeddings.word_embeddings.weight
    sum(loss(model, mask) for mask in masks).backward()
    want, weight.grad = weight.grad, None
    losses = [loss(model, mask, recomputed) for mask in masks]
    meet = threading.Barrier(2)
    model.encoder.layer[0].intermediate.register_forward_pre_hook(
        lambda module, args: (meet.wait(WAIT), None)[1]
    )
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda each: each.backward(), losses))
        assert list(pool.map(lambda _: running_calls(model), range(2))) == [[None, None]] * 2
    torch.testing.assert_close(weight.grad, want, rtol=1e-4, atol=1e-4)


def test_a_call_that_fails_leaves_nothing_behind():
    model, masks = inserted_model("bert"), two_masks("bert")
    want = answer("bert", model, masks[0])

    def fail(module, args):
        raise RuntimeError("on purpose")

    handle = model.encoder.layer[1].intermediate.register_forward_pre_hook(fail)
    with pytest.raises(RuntimeError, match="on purpose"):
        answer("bert", model, masks[1])
    handle.remove()
    assert running_calls(model) == [None, None]
    assert torch.equal(answer("bert", model, masks[0]), want)


def test_refuses_a_part_of_a_block_that_runs_outside_of_its_call():
    model = inserted_model("bert")
    with pytest.raises(ValueError, match="checkpoint whole blocks"):
        model.encoder.layer[0].output(torch.ones(1, 3, 2 * DIM), torch.ones(1, 3, DIM))


class Bare(nn.Module):
    """A block whose call brings neither mask nor cache, and that checkpoints a part of itself."""

    def __init__(self):
        super().__init__()
        self.norm_a, self.norm_b = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.mix, self.mlp = nn.Linear(DIM, DIM), nn.Linear(DIM, DIM)
        self.recomputes = False

    def forward(self, u):
        u = u + self.mix(self.norm_a(u))
        if self.recomputes:
            return u + checkpoint(self.mlp, self.norm_b(u), use_reentrant=False)
        return u + self.mlp(self.norm_b(u))


BARE = Family(
    name="bare", norm=NormOrder.PRE, norms=("norm_a", "norm_b"), attention=out_of("mix"),
    ffn=out_of("mlp"), width="mix", values=into("mix"),
)  # fmt: skip


def test_a_checkpointed_part_is_right_where_the_call_brings_nothing():
    torch.manual_seed(0)
    u, block = torch.randn(2, 5, DIM), Bare()
    inserted = insert(block, "after_ffn", family=BARE, causal=False, initial_ratio=0.2)
    gradients = []
    for block.recomputes in (False, True):
        gradients.append(torch.autograd.grad(block(u).square().sum(), inserted.parameters()))
    torch.testing.assert_close(*gradients)


def test_a_checkpointed_part_is_refused_where_the_stream_is_owed_something():
    block = Bare()
    insert(block, "after_attention", route="stream", family=BARE, causal=False)
    with pytest.raises(ValueError, match="got a call of its own"):
        block.norm_b(torch.ones(1, 3, DIM))


def test_ending_without_a_call_does_nothing():
    running = Running()
    running.end()
    assert running.call is None
