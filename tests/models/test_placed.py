import pytest
import torch

from depthpde.layers.diffusion import Diffusion
from depthpde.layers.interaction import Inside
from depthpde.layers.registry import LayerConfig
from depthpde.models.classifier import Classifier
from depthpde.models.placed import AcrossHeads, AlongKeys, AlongSites, HookPoint, PlacedLayers
from depthpde.models.placement import Placement
from depthpde.models.position import Position


def diffusion(dim, **settings):
    return Diffusion(dim, dtype=torch.float64, initial_ratio=0.125, **settings)


def test_nothing_placed_does_nothing_and_holds_nothing(small):
    placed, u = PlacedLayers(small(), 0), torch.randn(1, 4, 8)
    assert placed.on_branch(Position.AFTER_FFN, u) is u
    assert placed.on_stream(Position.BETWEEN_BLOCKS, u) is u
    assert not list(placed.parameters())


def test_a_layer_acts_on_its_own_route_only(small):
    placed = PlacedLayers(small(positions=(Placement(position="after_ffn", route="stream"),)), 0)
    u = torch.randn(1, 4, 8)
    assert placed.on_branch(Position.AFTER_FFN, u) is u
    assert not torch.equal(placed.on_stream(Position.AFTER_FFN, u), u)


def test_after_embedding_is_held_before_the_first_block_and_all_else_inside(small):
    config = small(positions=tuple(Position))
    assert list(PlacedLayers(config, None).layers) == ["after_embedding"]
    assert list(PlacedLayers(config, 1).layers) == [
        "before_norm_attention",
        "before_norm_reaction",
        "in_attention_value",
        "in_heads",
        "after_attention",
        "after_ffn",
        "between_blocks",
    ]


def test_observers_see_every_place_once_in_the_order_of_the_equation(small, tokens):
    model = Classifier(small(blocks=1))
    seen = []
    stop = model.observe(lambda place, u: seen.append((place, tuple(u.shape))))
    model(tokens)
    field = (3, 12, 8)
    assert seen == [
        (HookPoint(Position.AFTER_EMBEDDING, None, ""), field),
        (HookPoint(Position.BEFORE_NORM, 0, "attention"), field),
        (HookPoint(Position.IN_ATTENTION, 0, "query"), field),
        (HookPoint(Position.IN_ATTENTION, 0, "key"), field),
        (HookPoint(Position.IN_ATTENTION, 0, "value"), field),
        (HookPoint(Position.IN_HEADS, 0, ""), field),
        (HookPoint(Position.AFTER_ATTENTION, 0, ""), field),
        (HookPoint(Position.BEFORE_NORM, 0, "reaction"), field),
        (HookPoint(Position.AFTER_FFN, 0, ""), field),
        (HookPoint(Position.BETWEEN_BLOCKS, 0, ""), field),
    ]
    stop()
    model(tokens)
    assert len(seen) == 10


def test_observers_see_the_same_places_in_a_post_norm_block(small, tokens):
    model, places = Classifier(small(blocks=2, stabilizer={"norm": "post"})), []
    model.observe(lambda place, u: places.append(place))
    model(tokens)
    assert len(places) == len(set(places)) == 1 + 2 * 9


def test_observers_are_told_what_goes_on_after_the_layer_has_acted(small):
    placed, printed = PlacedLayers(small(positions=("after_ffn",)), 0), []
    placed.observe(lambda place, u: printed.append(u))
    out = placed.on_branch(Position.AFTER_FFN, torch.randn(1, 4, 8))
    assert printed[0] is out


def test_watching_changes_no_bit(small, tokens, mask):
    model = Classifier(small(positions=tuple(Position)))
    alone = model(tokens, mask)
    model.observe(lambda place, u: None)
    assert torch.equal(model(tokens, mask), alone)


def test_weights_are_observed_only_where_they_are_formed(small, tokens):
    parts = []
    placement = Placement(position="in_attention", option="weights")
    model = Classifier(small(blocks=1, positions=(placement,)))
    model.observe(lambda place, u: parts.append((place.part, tuple(u.shape))))
    model(tokens)
    assert (Inside.WEIGHTS.value, (3, 2, 12, 12)) in parts


def test_sites_in_front_are_left_alone():
    u = torch.randn(2, 6, 4, dtype=torch.float64)
    layer = diffusion(4)
    out = AlongSites(layer, prefix=1)(u, None)
    assert torch.equal(out[:, :1], u[:, :1])
    torch.testing.assert_close(out[:, 1:], layer(u[:, 1:]), rtol=0, atol=0)


def test_rows_do_not_mix_where_they_must_not():
    u = torch.randn(2, 12, 4, dtype=torch.float64)
    layer = diffusion(4)
    out = AlongSites(layer, row_length=4)(u, None)
    rows = layer(u.reshape(6, 4, 4)).reshape(2, 12, 4)
    torch.testing.assert_close(out, rows, rtol=0, atol=1e-15)


@pytest.mark.parametrize("causal", [False, True])
def test_weights_flow_only_between_keys_that_a_query_may_see(causal):
    weights = torch.rand(1, 2, 4, 4, dtype=torch.float64)
    weights = weights.tril() if causal else weights
    layer = AlongKeys(AlongSites(diffusion(2, causal=causal)), causal=causal)
    mask = torch.tensor([[True, True, True, False]])
    weights = weights * (mask[:, None, :, None] & mask[:, None, None, :])
    out = layer(weights, mask)
    assert out[..., 3].abs().max() == 0
    if causal:
        assert out.triu(1).abs().max() == 0
    else:
        torch.testing.assert_close(out.sum(dim=-1), weights.sum(dim=-1), rtol=0, atol=1e-14)
    assert not torch.equal(out, weights)


def test_across_heads_no_site_sees_another():
    u = torch.randn(1, 5, 8, dtype=torch.float64)
    changed = u.clone()
    changed[:, 2] += 1
    layer = AcrossHeads(diffusion(4), 2)
    same = (layer(u, None) == layer(changed, None)).all(dim=-1)[0]
    assert same.tolist() == [True, True, False, True, True]
    torch.testing.assert_close(
        layer(u, None).reshape(5, 2, 4).sum(dim=1), u.reshape(5, 2, 4).sum(dim=1)
    )


def test_the_initial_ratio_decays_with_depth(small):
    config = small(blocks=4, positions=("after_ffn", "after_embedding"), schedule="decaying")
    ratios = [PlacedLayers(config, b).layers["after_ffn"].layer.ratio[0].item() for b in range(4)]
    assert ratios == pytest.approx([1 / 8, 3 / 32, 1 / 16, 1 / 32])
    assert PlacedLayers(config, None).layers["after_embedding"].layer.ratio[0].item() == 1 / 8


@pytest.mark.parametrize("kind", ["diffusion", "multiscale"])
@pytest.mark.parametrize("masked", [False, True])
def test_smoothed_weights_are_computed_as_smoothed_values(small, tokens, kind, masked):
    placement = Placement(position="in_attention", option="weights", layer=LayerConfig(kind=kind))
    model = Classifier(small(blocks=2, positions=(placement,))).double()
    mask = torch.ones_like(tokens, dtype=torch.bool)
    mask[0, -4:] = False
    mask = mask if masked else None
    block = model.encoder.blocks[0]
    assert block.placed.on_values(mask) is not None
    by_values = model(tokens, mask)
    leaves = tuple(model.parameters())
    grads = torch.autograd.grad(by_values.sum(), leaves, allow_unused=True)
    stop = model.observe(lambda place, u: None)  # an observer wants the weights themselves
    assert block.placed.on_values(mask) is None
    by_weights = model(tokens, mask)
    torch.testing.assert_close(by_values, by_weights, rtol=0, atol=1e-12)
    wanted = torch.autograd.grad(by_weights.sum(), leaves, allow_unused=True)
    for one, other in zip(grads, wanted, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            torch.testing.assert_close(one, other, rtol=0, atol=1e-10)
    stop()
    assert block.placed.on_values(mask) is not None


@pytest.mark.parametrize(
    ("settings", "layer"),
    [
        ({"causal": True}, {"kind": "diffusion"}),
        ({}, {"kind": "adaptive"}),
        ({}, {"kind": "multiscale", "gated": True}),
    ],
)
def test_weights_are_formed_where_values_cannot_do_the_same(small, settings, layer):
    placement = Placement(position="in_attention", option="weights", layer=LayerConfig(**layer))
    model = Classifier(small(blocks=1, positions=(placement,), **settings))
    assert model.encoder.blocks[0].placed.on_values(None) is None
