"""Padding and cache of blocks that are not given them: read from the model's own call."""

import copy

import pytest
import torch
import transformers

import depthpde as dp
from depthpde.insertion.hooks.model_hooks import carried_windows, returned_cache, sites_in
from depthpde.layers.decoding import UNCOUNTED

IDS = torch.randint(5, 40, (2, 7), generator=torch.Generator().manual_seed(0))


def gpt2():
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=40,
        n_embd=16,
        n_layer=2,
        n_head=2,
        n_positions=32,
        bos_token_id=1,
        eos_token_id=2,
    )
    return transformers.GPT2LMHeadModel(config).eval()


def neo():
    torch.manual_seed(0)
    config = transformers.GPTNeoConfig(
        vocab_size=40, hidden_size=16, num_layers=2, num_heads=2, max_position_embeddings=32,
        attention_types=[[["global", "local"], 1]], bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    return transformers.GPTNeoForCausalLM(config).eval()


@pytest.mark.parametrize(
    ("build", "where"),
    [(neo, {"position": "after_ffn"}), (gpt2, {"at": "transformer.h.0.mlp", "causal": True})],
)
def test_a_layer_decodes_and_knows_padding_where_its_block_is_given_neither(build, where):
    model = build()
    inserted = dp.insert(model, **where, initial_ratio=0.2)
    report = dp.audit(model, IDS, questions=["future", "padding", "cache"])
    assert not report.leaks, report
    assert report["cache"].trials > 0
    options = {"max_new_tokens": 3, "do_sample": False, "pad_token_id": 0}
    steps = model.generate(IDS, num_beams=2, **options)
    assert torch.equal(steps, model.generate(IDS, num_beams=2, use_cache=False, **options))
    twin = copy.deepcopy(model)
    inserted.remove()
    assert not model._forward_hooks
    assert not model._forward_pre_hooks
    assert torch.equal(twin.generate(IDS, num_beams=2, **options), steps)


def test_a_block_outside_a_call_of_its_model_is_refused():
    model = gpt2()
    dp.insert(model, at="transformer.h.0.mlp", causal=True)
    with pytest.raises(ValueError, match="must run inside a call of the model"):
        model.transformer(IDS)
    with pytest.raises(RuntimeError, match="broken"):
        _fails(model)
    assert model.depthpde_insertion.model_hooks.running.call is None


def _fails(model):
    def fail(*_):
        raise RuntimeError("broken")

    handle = model.lm_head.register_forward_hook(fail)
    try:
        model(IDS)
    finally:
        handle.remove()


def test_a_cache_filled_before_the_insertion_is_refused():
    model = neo()
    kept = model(IDS).past_key_values
    dp.insert(model, "after_ffn")
    with pytest.raises(ValueError, match="never read"):
        model(IDS[:, :1], past_key_values=kept)


def test_sites_are_counted_where_a_cache_counts():
    class Counts:
        def __init__(self, *counts):
            self.counts = counts

        def __len__(self):
            return len(self.counts)

        def get_seq_length(self, number):
            if self.counts[number] is None:
                raise ValueError("a recurrence has no length")
            return self.counts[number]

    assert sites_in(Counts(0, 4), {}) == 4
    assert sites_in(Counts(None), {}) == 0
    assert sites_in(Counts(None), {"a": None}) == UNCOUNTED
    assert sites_in(object(), {}) == 0
    with pytest.raises(ValueError, match=r"one that grows, got Counts; use a DynamicCache"):
        sites_in(Counts(torch.tensor(3)), {})


def test_a_cache_is_found_in_what_a_model_returns():
    cache = transformers.DynamicCache()
    assert returned_cache({"past_key_values": cache}) is cache
    assert returned_cache((IDS, cache)) is cache
    assert returned_cache(IDS) is None
    with pytest.raises(ValueError, match=r"can carry .* got list; .*use_cache=False"):
        carried_windows([])
