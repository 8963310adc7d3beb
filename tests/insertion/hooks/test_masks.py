import pytest
import torch

from depthpde.insertion.family import Padding
from depthpde.insertion.hooks.masks import packed_segments, valid_mask
from depthpde.insertion.insert import insert
from insertion.zoo import BERT, ZOO, embedded, padding, spread, tokens

VALID = padding()
KEEP, IGNORE = Padding("attention_mask"), Padding("src_key_padding_mask", keep=False)
LOWEST = torch.finfo(torch.float32).min


@pytest.mark.parametrize(
    ("mask", "convention"),
    [
        (VALID, KEEP),
        (VALID.long(), KEEP),
        (~VALID, IGNORE),
        (torch.where(VALID, 0.0, float("-inf")), IGNORE),
        (torch.where(VALID, 0.0, -1e9), IGNORE),
        (torch.where(VALID, -20.0, -1e4).half(), IGNORE),
        (VALID[:, None, None, :], KEEP),
        (torch.where(VALID, 0.0, LOWEST)[:, None, None, :], KEEP),
        (VALID[:, None, None, :] & torch.ones(7, 7, dtype=torch.bool).tril(), KEEP),
    ],
    ids=[
        "bool",
        "integer",
        "ignored",
        "minus-infinity",
        "far below",
        "half",
        "4-d",
        "4-d added",
        "4-d causal",
    ],
)
def test_every_convention_becomes_true_for_real_tokens(mask, convention):
    assert torch.equal(valid_mask(mask, convention, (3, 7)), VALID)


def test_the_last_columns_belong_to_this_call():
    assert torch.equal(valid_mask(VALID, KEEP, (3, 2)), VALID[:, -2:])


def test_one_sequence_alone_has_a_mask_of_one_row():
    assert torch.equal(valid_mask(~VALID[1], IGNORE, (1, 7)), VALID[1:2])


def test_a_mask_of_one_row_serves_the_batch():
    assert torch.equal(valid_mask(VALID[1:2], KEEP, (3, 7)), VALID[1:2].expand(3, 7))


def test_no_mask_is_no_mask():
    assert valid_mask(None, KEEP, (3, 7)) is None


def test_refuses_a_mask_that_tells_no_tokens():
    with pytest.raises(ValueError, match=r"`attention_mask` must be a tensor .* got \[3, 7, 7\]"):
        valid_mask(torch.ones(3, 7, 7), KEEP, (3, 7))
    with pytest.raises(ValueError, match=r"got dict;.*with attn_implementation"):
        valid_mask({}, KEEP, (3, 7))


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_padded_equals_unpadded_whatever_the_attention_implementation(attention):
    import transformers

    config = transformers.BertConfig(**BERT, attn_implementation=attention)
    model = spread(transformers.BertForTokenClassification(config))
    for position in ("after_embedding", "in_attention", "in_heads", "before_norm"):
        insert(model, position, initial_ratio=0.2)
    ids, valid = tokens(), padding()
    with torch.no_grad():
        padded = model(ids, attention_mask=valid.long()).logits
        for row, length in zip(range(len(ids)), valid.sum(dim=1).tolist(), strict=True):
            alone = model(ids[row : row + 1, :length]).logits
            torch.testing.assert_close(padded[row, :length], alone[0], rtol=1e-5, atol=1e-5)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_nested_tensors_are_off_while_something_is_inserted_and_on_again_afterwards():
    encoder, valid = ZOO["torch_encoder_post"].build(), padding()
    with torch.no_grad():
        plain = encoder(embedded(), src_key_padding_mask=~valid)
        assert encoder.use_nested_tensor
        inserted = insert(encoder, "after_ffn")
        assert not encoder.use_nested_tensor
        now = encoder(embedded(), src_key_padding_mask=~valid)
        torch.testing.assert_close(now[valid], plain[valid], rtol=0, atol=2e-6)
        inserted.remove()
        assert encoder.use_nested_tensor
        assert torch.equal(encoder(embedded(), src_key_padding_mask=~valid), plain)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_refuses_a_nested_tensor():
    layer = ZOO["torch_layer"].build()
    insert(layer, "after_embedding")
    nested = torch.nested.nested_tensor([torch.ones(3, 16), torch.ones(2, 16)])
    with pytest.raises(ValueError, match=r"must.*is inserted"):
        layer(nested)


def test_a_mask_tells_where_packed_sequences_end():
    document = torch.tensor([0, 0, 0, 1, 1, 2, 2])
    together = document[:, None] == document
    for mask in (together, together.tril()):
        assert packed_segments(mask[None, None], KEEP, (3, 7)).tolist() == [document.tolist()] * 3
    assert packed_segments(VALID, KEEP, (3, 7)) is None
    assert packed_segments(together[None, None, -2:], KEEP, (3, 2)) is None


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_packed_sequences_equal_those_run_alone(name):
    model, ids = ZOO[name].build(), tokens()[:1]
    for position in ("after_embedding", "in_attention", "before_norm", "between_blocks"):
        insert(model, position, layer="multiscale", initial_ratio=0.3)
    packed = torch.tensor([[0, 1, 2, 0, 1, 2, 3]])
    with torch.no_grad():
        together = model(ids, position_ids=packed, use_cache=False).logits
        alone = [model(each, use_cache=False).logits for each in (ids[:, :3], ids[:, 3:])]
    torch.testing.assert_close(together, torch.cat(alone, dim=1), rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", ["gpt2", "llama"])
@pytest.mark.parametrize("layer", ["diffusion", "multiscale"])
def test_packed_sequences_do_not_mix_while_a_cache_is_filled_and_the_last_goes_on(name, layer):
    model, ids = ZOO[name].build(), tokens()[:1]
    for position in ("after_embedding", "before_norm", "between_blocks"):
        insert(model, position, layer=layer, initial_ratio=0.3)
    site, document = torch.tensor([[0, 1, 2, 0, 1, 2, 3]]), torch.tensor([0, 0, 0, 1, 1, 1, 1])
    mask = (document[:, None] == document).tril()[None, None]
    with torch.no_grad():
        filled = model(
            ids[:, :6], attention_mask=mask[..., :6, :6], position_ids=site[:, :6], use_cache=True
        )
        last = model(
            ids[:, 6:],
            attention_mask=mask[..., 6:, :],
            position_ids=site[:, 6:],
            past_key_values=filled.past_key_values,
        )
        alone = [model(each, use_cache=False).logits for each in (ids[:, :3], ids[:, 3:])]
    together = torch.cat((filled.logits, last.logits), dim=1)
    torch.testing.assert_close(together, torch.cat(alone, dim=1), rtol=0, atol=1e-5)


def test_a_sequence_without_a_batch_is_served():
    layer = ZOO["torch_layer"].build()
    insert(layer, "after_ffn", initial_ratio=0.2)
    with torch.no_grad():
        one, many = layer(embedded()[0]), layer(embedded())
    torch.testing.assert_close(one, many[0], rtol=1e-5, atol=1e-5)
