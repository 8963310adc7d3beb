"""Layers through which padding or a cache would pass are refused, and leave no trace."""

import pytest
import torch
from torch import nn

import depthpde as dp
from insertion.nano import WIDTH, WORDS


class Headed(nn.Module):
    """A class token before the words: the mask that the model is given has one site less."""

    def __init__(self, *, classes=True):
        super().__init__()
        torch.manual_seed(0)
        self.table, self.first = nn.Embedding(WORDS, WIDTH), nn.Parameter(torch.randn(WIDTH))
        self.h = nn.ModuleList(Masked() for _ in range(2))
        self.classes = classes
        self.eval()

    def forward(self, input_ids, attention_mask=None):
        real = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        u = self.table(input_ids)
        if self.classes:
            u = torch.cat([self.first.expand(len(u), 1, -1), u], dim=1)
            real = torch.cat([torch.ones_like(real[:, :1]), real], dim=1)
        for block in self.h:
            block.real = real.bool()  # no argument shows it
            u = block(u)
        return u


class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.attn = (
            nn.LayerNorm(WIDTH),
            nn.MultiheadAttention(WIDTH, 2, batch_first=True),
        )
        self.norm_2, self.mlp = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH)
        self.real = None

    def forward(self, u):
        v = self.norm(u)
        u = u + self.attn(v, v, v, key_padding_mask=~self.real, need_weights=False)[0]
        return u + self.mlp(self.norm_2(u))


class Kept:
    """A cache of some library: it says neither how many sites it holds nor who has read them."""

    def __init__(self, held):
        self.held = held


class Sums(nn.Module):
    """Running sums: causal. With a cache each block goes on, or the model reads all again."""

    def __init__(self, *, again):
        super().__init__()
        torch.manual_seed(0)
        self.table, self.again = nn.Embedding(WORDS, WIDTH), again
        self.h = nn.ModuleList(RunningSum() for _ in range(2))
        self.eval()

    def forward(self, input_ids, past_key_values=None, use_cache=True):
        held = None if past_key_values is None else past_key_values.held
        new = input_ids.shape[1]
        if self.again:
            input_ids = input_ids if held is None else torch.cat([held, input_ids], dim=1)
        u, made = self.table(input_ids), []
        for k, block in enumerate(self.h):
            u = block(u, 0.0 if held is None or self.again else held[k])
            made.append(block.last)
        cache = Kept(input_ids if self.again else made)
        return {"logits": u[:, -new:], "past_key_values": cache}


class RunningSum(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix, self.last = nn.Linear(WIDTH, WIDTH), None

    def forward(self, u, before):
        total = self.mix(u).cumsum(dim=1) + before
        self.last = total[:, -1:]
        return u + total / 8


IDS = torch.randint(0, WORDS, (2, 6), generator=torch.Generator().manual_seed(0))


def bare(model):
    hooks = [m for m in model.modules() if m._forward_hooks or m._forward_pre_hooks]
    return not hooks and not hasattr(model, "depthpde_insertion")


@pytest.mark.parametrize("where", [{"position": "between_blocks"}, {"at": "h.0.mlp"}])
def test_padding_that_would_pass_is_refused_and_the_model_is_as_it_was(where):
    model = Headed()
    plain = model(IDS)
    with pytest.raises(ValueError, match=r"right padding .* family="):
        dp.insert(model, **where, causal=False)
    assert bare(model)
    assert torch.equal(model(IDS), plain)


@pytest.mark.parametrize("where", [{"position": "between_blocks"}, {"at": "h.0.mlp"}])
def test_padding_that_only_the_model_is_given_is_a_wall(where):
    model = Headed(classes=False)
    dp.insert(model, **where, causal=False)
    report = dp.audit(model, {"input_ids": IDS}, questions=["padding"])
    assert report["padding"].verdict is dp.Isolation.ISOLATED, report


def test_a_cache_that_cannot_be_followed_is_refused():
    model = Sums(again=True)
    assert not dp.audit(model, {"input_ids": IDS}, causal=True, questions=["cache"]).leaks
    with pytest.raises(ValueError, match="a cache that reaches"):
        dp.insert(model, "between_blocks", causal=True, batch={"input_ids": IDS})
    assert bare(model)


def test_a_cache_of_any_kind_carries_what_layers_have_read():
    model = Sums(again=False)
    dp.insert(model, "between_blocks", causal=True, batch={"input_ids": IDS})
    answer = dp.audit(model, {"input_ids": IDS}, causal=True, questions=["cache"])["cache"]
    assert answer.verdict is dp.Isolation.ISOLATED
    assert answer.trials > 2


def _forget(block, args):
    block.real = torch.ones_like(block.real)


def test_what_the_model_lets_through_by_itself_is_not_the_layers():
    model = Headed(classes=False)
    for block in model.h:
        block.register_forward_pre_hook(
            lambda block, args: setattr(block, "real", block.real | True)
        )
    assert dp.audit(model, {"input_ids": IDS}, questions=["padding"]).leaks
    dp.insert(model, "between_blocks", causal=False)
