import pytest
import torch
from torch import nn

from depthpde.layers.registry import LayerConfig, LayerKind
from depthpde.models.encoder import Encoder
from depthpde.models.initialisation import initialise
from depthpde.models.placement import Placement
from depthpde.models.position import Option, Position


def build(config):
    encoder = Encoder(config).double()
    initialise(encoder, config, torch.Generator().manual_seed(0))
    return encoder


def test_a_token_model_is_embedding_plus_sites_then_blocks_then_norm(small, tokens):
    encoder = build(small())
    u = encoder.embedding(tokens) + encoder.encoding.sites
    for block in encoder.blocks:
        u = block(u)
    field, mask = encoder(tokens)
    assert torch.equal(field, encoder.final_norm(u))
    assert mask is None


@pytest.mark.parametrize("norm", ["pre", "post", "none"])
def test_only_a_pre_norm_model_ends_in_a_norm(small, norm):
    final = Encoder(small(stabilizer={"norm": norm})).final_norm
    assert isinstance(final, nn.LayerNorm if norm == "pre" else nn.Identity)


@pytest.mark.parametrize("option", [Option.AFTER_ENCODING, Option.BEFORE_ENCODING])
def test_after_embedding_smooths_with_or_without_the_sites(small, tokens, option):
    placement = Placement(position=Position.AFTER_EMBEDDING, option=option)
    encoder = build(small(positions=(placement,)))
    layer = encoder.placed.layers["after_embedding"].layer
    content, sites = encoder.embedding(tokens), encoder.encoding.sites
    u = layer(content + sites) if option == "after_encoding" else layer(content) + sites
    for block in encoder.blocks:
        u = block(u)
    assert torch.equal(encoder(tokens)[0], encoder.final_norm(u))


IDENTITIES = (LayerKind.DEPTHWISE_CONV, LayerKind.CANON, LayerKind.SMEAR)
"""Kinds that start as the identity."""


@pytest.mark.parametrize("kind", list(LayerKind))
def test_any_layer_stands_after_the_embedding(small, tokens, mask, kind):
    encoder = build(small(positions=("after_embedding",), layer=kind))
    bare = build(small())
    changed = not torch.equal(encoder(tokens, mask)[0], bare(tokens, mask)[0])
    assert changed == (kind not in IDENTITIES)


def test_zero_diffusion_everywhere_is_the_bare_model(small, tokens, mask):
    placed = build(small(positions=tuple(Position), layer=LayerConfig(initial_ratio=0.0)))
    assert torch.equal(placed(tokens, mask)[0], build(small())(tokens, mask)[0])


@pytest.mark.parametrize("encoding", ["learned", "sinusoidal", "rotary", "none"])
def test_only_without_encoding_the_order_of_tokens_is_invisible(small, tokens, encoding):
    encoder = build(small(encoding=encoding))
    forward, backward = encoder(tokens)[0], encoder(tokens.flip(1))[0].flip(1)
    assert torch.allclose(forward, backward, rtol=0, atol=1e-10) == (encoding == "none")


def test_diffusion_alone_sees_neighbours_without_any_encoding(small, tokens):
    encoder = build(small(encoding="none", positions=("after_embedding",)))
    shuffled = tokens[:, torch.randperm(12, generator=torch.Generator().manual_seed(3))]
    sums = encoder(tokens)[0].sum(dim=1), encoder(shuffled)[0].sum(dim=1)
    assert not torch.allclose(*sums, rtol=0, atol=1e-6)


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_padding_never_leaks(small, tokens, mask, pooling):
    encoder = build(small(pooling=pooling, positions=tuple(Position)))
    other = torch.where(mask, tokens, (tokens + 3) % 11)
    (first, kept), (second, _) = encoder(tokens, mask), encoder(other, mask)
    assert torch.equal(first[kept], second[kept])


def test_cls_pooling_adds_one_site_in_front_that_is_always_real(small, tokens, mask):
    field, kept = build(small(pooling="cls"))(tokens, mask)
    assert field.shape == (3, 13, 8)
    assert kept[:, 0].all()
    assert torch.equal(kept[:, 1:], mask)


def test_pixels_may_be_whole_numbers_or_real_ones(small):
    encoder = build(small(input="linear", vocabulary=256))
    pixels = torch.randint(256, (2, 12))
    real = pixels.double() * (2 / 255) - 1
    torch.testing.assert_close(encoder(pixels)[0], encoder(real)[0], rtol=0, atol=1e-12)


def test_rows_and_plane_give_other_neighbours_than_the_line(small, tokens):
    fields = [
        build(small(grid=(3, 4), geometry=geometry, positions=("after_embedding",)))(tokens)[0]
        for geometry in ("line", "rows", "plane")
    ]
    for a, b in ((0, 1), (0, 2), (1, 2)):
        assert not torch.allclose(fields[a], fields[b])


def test_refuses_to_be_built_without_its_sizes(small):
    with pytest.raises(ValueError, match=r"`vocabulary`.*the model"):
        Encoder(small(vocabulary=None))
    with pytest.raises(ValueError, match="`length` must be known"):
        Encoder(small(length=None))
    with pytest.raises(ValueError, match="`grid` must be known"):
        Encoder(small(input="patch"))


def test_refuses_a_mask_of_other_sites(small, tokens):
    with pytest.raises(ValueError, match="`valid_mask` must have shape"):
        Encoder(small())(tokens, torch.ones(3, 5, dtype=torch.bool))


@pytest.mark.parametrize("wrong", [torch.zeros(2, 12), torch.zeros(2, 12, 1, dtype=torch.long)])
def test_refuses_tokens_that_are_not_whole_or_not_a_sequence(small, wrong):
    with pytest.raises(ValueError, match=r"`inputs`.*ids \[batch, length\]"):
        Encoder(small())(wrong)
