import pytest
import torch

from depthpde.layers.decoding import DecodeCache
from depthpde.layers.embedding import Rotary
from depthpde.layers.interaction import Attention, Inside, renormalise


def field(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


@pytest.fixture
def attention():
    torch.manual_seed(0)
    return Attention(8, 2, dtype=torch.float64)


def test_attention_is_the_formula_head_by_head(attention):
    u = field(2, 5, 8)
    query, key, value = (getattr(attention, name)(u) for name in ("query", "key", "value"))
    heads = []
    for h in (slice(0, 4), slice(4, 8)):
        weights = torch.softmax(query[..., h] @ key[..., h].mT / 2.0, dim=-1)
        heads.append(weights @ value[..., h])
    wanted = attention.out(torch.cat(heads, dim=-1))
    torch.testing.assert_close(attention(u), wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_the_explicit_path_equals_the_fused_one_at_every_real_token(causal, masked):
    torch.manual_seed(0)
    fused = Attention(8, 2, causal=causal, rotation=Rotary(4), dtype=torch.float64)
    explicit = Attention(
        8, 2, causal=causal, rotation=Rotary(4), explicit=True, dtype=torch.float64
    )
    explicit.load_state_dict(fused.state_dict())
    u = field(2, 6, 8)
    mask = torch.arange(6) < torch.tensor([[6], [4]]) if masked else None
    kept = slice(None) if mask is None else mask
    difference = fused(u, valid_mask=mask)[kept] - explicit(u, valid_mask=mask)[kept]
    assert difference.abs().max() < 1e-12


@pytest.mark.parametrize("explicit", [False, True])
def test_padding_is_never_looked_at(explicit):
    torch.manual_seed(0)
    attention = Attention(8, 2, explicit=explicit, dtype=torch.float64)
    u, mask = field(2, 6, 8), torch.arange(6) < torch.tensor([[6], [3]])
    noisy = torch.where(mask[..., None], u, field(2, 6, 8, seed=1))
    first, second = (attention(each, valid_mask=mask)[mask] for each in (u, noisy))
    assert torch.equal(first, second)


@pytest.mark.parametrize("explicit", [False, True])
@pytest.mark.parametrize("causal", [False, True])
def test_nothing_but_padding_gives_finite_numbers_and_gradients(explicit, causal):
    attention = Attention(8, 2, explicit=explicit, causal=causal)
    u = torch.randn(2, 4, 8, requires_grad=True)
    mask = torch.tensor([[False] * 4, [False, True, True, True]])
    out = attention(u, valid_mask=mask)
    out.sum().backward()
    assert torch.isfinite(out).all()
    assert torch.isfinite(u.grad).all()


@pytest.mark.parametrize("masked", [False, True])
def test_a_causal_head_never_sees_its_future(masked):
    torch.manual_seed(0)
    attention = Attention(8, 2, causal=True, dtype=torch.float64)
    u = field(1, 6, 8)
    changed = u.clone()
    changed[:, 4:] += 1.0
    mask = torch.ones(1, 6, dtype=torch.bool) if masked else None
    before, after = (attention(each, valid_mask=mask) for each in (u, changed))
    assert torch.equal(before[:, :4], after[:, :4])
    assert not torch.equal(before[:, 4:], after[:, 4:])


def test_everything_that_passes_by_is_shown_in_its_own_shape():
    seen = {}

    def at(place, u):
        seen[place] = tuple(u.shape)
        return u

    Attention(8, 2, explicit=True)(torch.zeros(3, 5, 8), at)
    assert seen == {
        Inside.QUERY: (3, 5, 8),
        Inside.KEY: (3, 5, 8),
        Inside.VALUE: (3, 5, 8),
        Inside.WEIGHTS: (3, 2, 5, 5),
        Inside.HEADS: (3, 5, 8),
    }


def test_what_is_given_back_goes_on(attention):
    u = field(2, 5, 8)
    silent = attention(u, lambda place, v: 0 * v if place is Inside.VALUE else v)
    assert torch.equal(silent, attention.out.bias.expand(2, 5, 8))


def test_renormalised_rows_sum_to_one_and_padding_rows_stay_zero():
    weights = torch.tensor([[0.2, 0.4, -0.1], [0.0, 0.0, 0.0]], dtype=torch.float64)
    wanted = torch.tensor([[1 / 3, 2 / 3, 0.0], [0.0, 0.0, 0.0]], dtype=torch.float64)
    weights.requires_grad_()
    out = renormalise(weights)
    out.square().sum().backward()
    torch.testing.assert_close(out.detach(), wanted, rtol=0, atol=1e-15)
    assert torch.isfinite(weights.grad).all()


@pytest.mark.parametrize("explicit", [False, True])
def test_dropout_acts_in_training_only(explicit):
    attention = Attention(8, 2, dropout=0.5, explicit=explicit)
    u = torch.randn(1, 64, 8)
    torch.manual_seed(0)
    first, second = attention(u), attention(u)
    assert not torch.equal(first, second)
    attention.eval()
    assert torch.equal(attention(u), attention(u))


@pytest.mark.parametrize(("explicit", "forms_it"), [(False, False), (True, True)])
def test_only_the_explicit_path_keeps_a_matrix_of_all_pairs(explicit, forms_it):
    kept = []

    def pack(saved):
        kept.append(saved.numel())
        return saved

    attention, u = Attention(8, 2, explicit=explicit), torch.randn(1, 200, 8)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda saved: saved):
        attention(u)
    assert (max(kept) >= 200 * 200) is forms_it


def test_refuses_a_past_where_the_future_is_seen(attention):
    with pytest.raises(ValueError, match="`cache` must go with causal attention"):
        attention(field(1, 4, 8), cache=DecodeCache())


def test_refuses_heads_that_do_not_divide_the_features():
    with pytest.raises(ValueError, match=r"`heads` must divide `dim`, got 3 heads.*\[1, 2, 4, 8\]"):
        Attention(8, 3)


def test_refuses_a_field_of_other_features_and_a_mask_of_other_sites(attention):
    with pytest.raises(ValueError, match=r"`u` must have 8 features.*got 6"):
        attention(field(1, 4, 6))
    with pytest.raises(ValueError, match=r"`valid_mask` must have shape"):
        attention(field(1, 4, 8), valid_mask=torch.ones(1, 5, dtype=torch.bool))
    with pytest.raises(ValueError, match="`dropout` must lie in"):
        Attention(8, 2, dropout=1.5)


def test_says_how_it_was_built(attention):
    assert "heads=2, causal=False, explicit=False" in repr(attention)
