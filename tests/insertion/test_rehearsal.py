import copy
from dataclasses import replace

import pytest
import torch
from torch import nn

from depthpde.insertion.families.recognition import recognise
from depthpde.insertion.insert import insert
from depthpde.insertion.rehearsal import linear_sizes, rehearse
from insertion.nano import GPT, NANO, WIDTH
from insertion.zoo import ZOO


def rehearsed(model, family=None):
    held = recognise(model, family)
    known, blocks = held.family, held.blocks
    return rehearse(model, known, blocks, [known.ffn])


@pytest.mark.parametrize(
    "name", ["bert", "distilbert", "gpt2", "llama", "torch_encoder_pre", "torch_layer",
             "torch_encoder_length_first", "x_encoder_pre", "x_decoder_pre"],
)  # fmt: skip
def test_a_tiny_input_tells_whether_a_model_is_causal(name):
    assert rehearsed(ZOO[name].build()).causal is ZOO[name].causal


@pytest.mark.parametrize("causal", [True, False])
def test_a_family_described_by_hand_is_found_out_and_gets_the_right_form(causal):
    model = GPT(causal=causal)
    assert rehearsed(model, NANO).causal is causal
    inserted = insert(model, "between_blocks", family=NANO)
    assert {layer.is_causal for layer in inserted.layers.values()} == {causal}


def test_no_update_makes_a_model_described_by_hand_leak():
    model = GPT()
    inserted = insert(model, "between_blocks", family=NANO)
    with torch.no_grad():
        for weight in inserted.parameters():
            weight.fill_(0.4)
    ids = torch.arange(8)[None]
    changed = torch.where(torch.arange(8) >= 4, ids + 9, ids)
    plain, other = (model(each, each)[0] for each in (ids, changed))
    assert (plain - other)[:, 4:].abs().max() > 1e-2
    torch.testing.assert_close(plain[:, :4], other[:, :4], rtol=0, atol=1e-6)


@pytest.mark.parametrize(("family", "asked"), [(NANO, False), (replace(NANO, causal=False), None)])
def test_refuses_the_symmetric_form_in_a_model_whose_sites_do_not_see_their_future(family, asked):
    with pytest.raises(ValueError, match="no site saw its future"):
        insert(GPT(), "between_blocks", family=family, causal=asked)


def test_must_be_said_where_the_model_cannot_be_run():
    model = GPT(causal=False, extra=True)
    with pytest.raises(ValueError, match=r"`causal` must be given .* only a block could be tried"):
        insert(model, "between_blocks", family=NANO)
    inserted = insert(model, "between_blocks", family=NANO, causal=False)
    assert not any(layer.is_causal for layer in inserted.layers.values())


def test_a_block_that_is_causal_by_itself_needs_no_model_around_it():
    inserted = insert(GPT(extra=True), "between_blocks", family=NANO)
    assert all(layer.is_causal for layer in inserted.layers.values())


def test_must_be_said_where_no_site_moves_another_yet():
    model = GPT()
    for block in model.h:
        nn.init.zeros_(block.attn.c_proj.weight)
    with pytest.raises(ValueError, match="no site moves another"):
        insert(model, "between_blocks", family=NANO)


def test_must_be_said_where_the_stream_is_not_finite():
    model = GPT()
    nn.init.constant_(model.wte.weight, torch.nan)
    with pytest.raises(ValueError, match="not finite"):
        insert(model, "between_blocks", family=NANO)


def test_must_be_said_where_the_blocks_see_other_sites_than_the_input():
    class Pooled(GPT):
        def forward(self, ids, targets=None):
            u = self.wte(ids).unflatten(1, (-1, 2)).mean(dim=2)
            for block in self.h:
                u = block(u)
            return u

    with pytest.raises(ValueError, match=r"not.*the input"):
        insert(Pooled(), "between_blocks", family=NANO)


def test_the_width_of_a_sequential_feed_forward_is_that_of_its_last_linear_map():
    for model in (GPT(), GPT(extra=True)):
        inserted = insert(model, "after_ffn", family=NANO)
        assert [match.dim for match in inserted.matches] == [WIDTH, WIDTH]
    model(torch.arange(4)[None], torch.arange(4)[None])
    chain = nn.Sequential(nn.Linear(3, 5), nn.Sequential(nn.GELU(), nn.Linear(5, 7)), nn.GELU())
    assert linear_sizes(chain) == (3, 7)
    assert linear_sizes(nn.GELU()) is None


def test_the_width_that_runs_decides_over_the_one_that_is_read():
    class Gated(nn.Linear):
        """Gives half of what its size says."""

        def forward(self, u):
            return super().forward(u).chunk(2, dim=-1)[0]

    model = GPT()
    for block in model.h:
        block.mlp = Gated(WIDTH, 2 * WIDTH)
    assert {match.dim for match in insert(model, "after_ffn", family=NANO).matches} == {WIDTH}


def test_leaves_the_model_as_it_was():
    model = GPT().train()
    model.h[1].eval()
    before, state = copy.deepcopy(model.state_dict()), torch.get_rng_state()
    rehearsed(model, NANO)
    assert model.training
    assert not model.h[1].training
    assert not any(each._forward_hooks or each._forward_pre_hooks for each in model.modules())
    assert torch.equal(torch.get_rng_state(), state)
    torch.testing.assert_close(model.state_dict(), before, rtol=0, atol=0)
