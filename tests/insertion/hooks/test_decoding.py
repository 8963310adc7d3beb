import copy

import pytest
import torch

from depthpde.insertion.insert import insert
from depthpde.layers.controls import ExponentialAverage
from insertion.zoo import BERT, ZOO, padding, spread, tokens

EVERYWHERE = (
    "after_embedding",
    "before_norm",
    "in_attention",
    "in_heads",
    "after_attention",
    "after_ffn",
    "between_blocks",
)
LAYERS = ("diffusion", "adaptive", "multiscale", "depthwise_conv", "token_shift", "learned_stencil")


def smoothed(name, layer="diffusion"):
    model = ZOO[name].build()
    for position in EVERYWHERE:
        insert(model, position, layer=layer, initial_ratio=0.3)
    insert(model, "before_norm", route="stream", layer=layer, initial_ratio=0.3)
    return model


def generate(model, *, use_cache, **options):
    settings = {"max_new_tokens": 12, "do_sample": False, "pad_token_id": 0, **options}
    valid = padding(left=True).long()
    return model.generate(tokens(), attention_mask=valid, use_cache=use_cache, **settings)


@pytest.fixture(autouse=True)
def _no_gradients():
    with torch.no_grad():
        yield


@pytest.mark.parametrize("name", ["gpt2", "llama"])
@pytest.mark.parametrize("layer", LAYERS)
def test_greedy_decoding_with_a_cache_equals_decoding_without(name, layer):
    model = smoothed(name, layer)
    printed = {"output_logits": True, "return_dict_in_generate": True}
    cached, full = (generate(model, use_cache=each, **printed) for each in (True, False))
    assert torch.equal(cached.sequences, full.sequences)
    torch.testing.assert_close(
        torch.stack(cached.logits), torch.stack(full.logits), rtol=0, atol=1e-5
    )


def test_an_encoder_made_a_decoder_decodes_incrementally_too():
    import transformers

    config = transformers.BertConfig(**BERT, is_decoder=True)
    model = spread(transformers.BertLMHeadModel(config))
    inserted = insert(model, "before_norm", initial_ratio=0.3)
    assert all(layer.is_causal for layer in inserted.layers.values())
    cached, full = (generate(model, use_cache=each) for each in (True, False))
    assert torch.equal(cached, full)


@pytest.mark.parametrize("name", ["gpt2", "llama"])
@pytest.mark.parametrize("chunk", [1, 2, 3])
def test_logits_of_chunks_equal_those_of_one_pass(name, chunk):
    model = smoothed(name)
    full = model(tokens()).logits
    cache, parts = None, []
    for piece in tokens().split(chunk, dim=1):
        out = model(piece, past_key_values=cache, use_cache=True)
        cache, parts = out.past_key_values, [*parts, out.logits]
    torch.testing.assert_close(torch.cat(parts, dim=1), full, rtol=0, atol=1e-5)


def test_one_site_is_kept_for_an_upwind_step():
    model = ZOO["gpt2"].build()
    insert(model, "after_ffn")
    cache = model(tokens(), use_cache=True).past_key_values
    assert {trace.sites.field.shape[1] for trace in cache.depthpde_memory.values()} == {1}


def test_a_layer_of_endless_memory_keeps_the_sequence():
    model = ZOO["gpt2"].build()
    insert(model, "after_ffn", layer=ExponentialAverage)
    cached, full = (generate(model, use_cache=each) for each in (True, False))
    assert torch.equal(cached, full)


def test_beam_search_takes_the_memory_along():
    model = smoothed("gpt2")
    beams, full = (generate(model, use_cache=each, num_beams=3) for each in (True, False))
    assert torch.equal(beams, full)


@pytest.mark.parametrize("way", ["reorder_cache", "batch_select_indices"])
def test_reordered_rows_go_on_with_their_own_memory(way):
    model, rows = smoothed("llama"), torch.tensor([2, 2, 0])
    cache = model(tokens()[:, :-1], use_cache=True).past_key_values
    getattr(cache, way)(rows)
    went_on = model(tokens()[rows, -1:], past_key_values=cache).logits
    full = model(tokens()[rows]).logits[:, -1:]
    torch.testing.assert_close(went_on, full, rtol=0, atol=1e-5)


def test_repeated_rows_go_on_with_their_own_memory():
    model, twice = smoothed("llama"), torch.tensor([0, 0, 1, 1, 2, 2])
    cache = model(tokens()[:, :-1], use_cache=True).past_key_values
    cache.batch_repeat_interleave(2)
    went_on = model(tokens()[twice, -1:], past_key_values=cache).logits
    torch.testing.assert_close(went_on, model(tokens()[twice]).logits[:, -1:], rtol=0, atol=1e-5)


def test_two_sequences_decoded_in_turns_do_not_mix():
    model = smoothed("gpt2")
    first, second = tokens(), tokens().flip(1)
    caches = [model(each[:, :-1], use_cache=True).past_key_values for each in (first, second)]
    for each, cache in zip((first, second), caches, strict=True):
        went_on = model(each[:, -1:], past_key_values=cache).logits
        torch.testing.assert_close(went_on, model(each).logits[:, -1:], rtol=0, atol=1e-5)


def test_a_copied_cache_goes_on_by_itself():
    model = smoothed("gpt2")
    prompt = model(tokens()[:, :-1], use_cache=True).past_key_values
    for _ in range(2):
        went_on = model(tokens()[:, -1:], past_key_values=copy.deepcopy(prompt)).logits
        torch.testing.assert_close(went_on, model(tokens()).logits[:, -1:], rtol=0, atol=1e-5)


def test_without_a_past_the_memory_starts_anew():
    model = smoothed("gpt2")
    want = model(tokens()).logits
    generate(model, use_cache=True)
    assert torch.equal(model(tokens()).logits, want)


def test_refuses_a_cache_that_was_cut_back():
    model = smoothed("gpt2")
    cache = model(tokens(), use_cache=True).past_key_values
    for layer in cache.layers:
        layer.crop(-2)
    with pytest.raises(ValueError, match=r"has read 7:.*cut back"):
        model(tokens()[:, :1], past_key_values=cache)


def test_refuses_a_cache_filled_before_the_insertion():
    model = ZOO["gpt2"].build()
    cache = model(tokens(), use_cache=True).past_key_values
    insert(model, "after_ffn")
    with pytest.raises(ValueError, match=r"has.*the insertion"):
        model(tokens()[:, :1], past_key_values=cache)


def test_refuses_a_cache_of_fixed_size():
    with pytest.raises(ValueError, match=r"must.*grows, got StaticCache"):
        generate(smoothed("gpt2"), use_cache=True, cache_implementation="static")


def test_refuses_the_cache_of_x_transformers_and_says_how_to_generate():
    from x_transformers import AutoregressiveWrapper

    wrapper = AutoregressiveWrapper(smoothed("x_decoder_pre"))
    with pytest.raises(ValueError, match="generate with cache_kv=False"):
        wrapper.generate(tokens(), 3, temperature=0.0)
    assert wrapper.generate(tokens(), 3, temperature=0.0, cache_kv=False).shape == (3, 3)
