from collections import namedtuple

import pytest
import torch
from torch import nn
from transformers import OpenAIGPTConfig, OpenAIGPTModel

from depthpde.insertion.family import Family, NormOrder, out_of
from depthpde.insertion.insert import insert
from insertion.zoo import DIM, ZOO, tokens


class Flat(nn.Module):
    """A block whose feed-forward runs on [batch · length, dim], or on fewer rows."""

    def __init__(self, *, flat, rows=None):
        super().__init__()
        torch.manual_seed(0)
        self.norm_a, self.norm_b = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.mix, self.mlp = nn.Linear(DIM, DIM), nn.Linear(DIM, DIM)
        self.flat, self.rows = flat, rows

    def forward(self, u):
        u = u + self.mix(self.norm_a(u))
        v = self.norm_b(u)
        if self.rows:
            return u + self.mlp(v.flatten(0, 1)[: self.rows]).mean()
        return u + (self.mlp(v.flatten(0, 1)).view_as(v) if self.flat else self.mlp(v))


FLAT = Family(
    name="flat", norm=NormOrder.PRE, norms=("norm_a", "norm_b"), attention=out_of("mix"),
    ffn=out_of("mlp"), width="mix", causal=False,
)  # fmt: skip


def test_sequences_that_a_block_lays_end_to_end_do_not_mix():
    u, outputs = torch.randn(3, 5, DIM), []
    for flat in (False, True):
        block = Flat(flat=flat)
        insert(block, "after_ffn", family=FLAT, initial_ratio=0.2)
        outputs.append(block(u))
    torch.testing.assert_close(*outputs)


def test_refuses_rows_that_are_not_the_sites_of_the_call():
    block = Flat(flat=True, rows=4)
    insert(block, "after_ffn", family=FLAT, initial_ratio=0.2)
    with pytest.raises(ValueError, match=r"3 × 5 sites .* got 4 rows"):
        block(torch.randn(3, 5, DIM))


class Listed(nn.Module):
    """A module that hands on its tensor in a container of its owner's."""

    def __init__(self, container):
        super().__init__()
        self.linear, self.container = nn.Linear(DIM, DIM), container

    def forward(self, u):
        return self.container(self.linear(u))


class Owner(nn.Module):
    """Calls it, and hands on what it gave."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, u):
        return self.inner(u)


Named = namedtuple("Named", ["field", "rest"])


@pytest.mark.parametrize("container", [lambda u: (u, 1), lambda u: Named(u, 1)])
def test_the_container_of_a_tensor_is_kept(container):
    model, u = Owner(Listed(container)), torch.randn(2, 5, DIM)
    plain = model(u)
    insert(model, at="inner", layout="blc", causal=False, batch={"u": u}, initial_ratio=0.2)
    changed = model(u)
    assert type(changed) is type(plain)
    assert changed[1] == 1
    assert not torch.equal(changed[0], plain[0])


def test_a_block_may_hand_on_a_list():
    shape = OpenAIGPTConfig(n_embd=16, n_layer=2, n_head=2, vocab_size=20, n_positions=16)
    model = OpenAIGPTModel(shape).eval()
    ids = torch.randint(20, (2, 9))
    plain = model(ids).last_hidden_state
    inserted = insert(model, "between_blocks")
    assert torch.equal(model(ids).last_hidden_state, plain)
    inserted.remove()
    insert(model, "between_blocks", initial_ratio=0.2)
    assert not torch.equal(model(ids).last_hidden_state, plain)


def test_refuses_a_batch_without_names():
    with pytest.raises(ValueError, match=r"`batch` must hold .* by name, got .*input_ids"):
        insert(Owner(nn.Linear(DIM, DIM)), at="inner", batch=torch.randn(2, 5, DIM))


@pytest.mark.parametrize("name", ["gemma", "opt"])
def test_norms_on_both_sides_and_flattened_terms_decode_step_by_step_as_in_one_pass(name):
    model = ZOO[name].build()
    for position in ("after_embedding", "after_ffn"):
        insert(model, position, initial_ratio=0.2)
    insert(model, "after_attention", route="stream", initial_ratio=0.2)
    ids = tokens()
    with torch.no_grad():
        whole = model(ids, use_cache=False).logits
        first = model(ids[:, :4], use_cache=True)
        past, steps = first.past_key_values, [first.logits]
        for k in range(4, ids.shape[1]):
            out = model(ids[:, k : k + 1], past_key_values=past, use_cache=True)
            past = out.past_key_values
            steps.append(out.logits)
    torch.testing.assert_close(torch.cat(steps, dim=1), whole, rtol=0, atol=1e-4)
