import pytest
import torch

from depthpde.layers.decoding import DecodeCache
from depthpde.layers.registry import LayerKind
from depthpde.models.language import LanguageModel
from depthpde.models.placement import Placement
from depthpde.models.position import OPTIONS, ROUTES, Position

CASES = [
    (position, route, option)
    for position in Position
    for route in ROUTES[position]
    for option in OPTIONS.get(position, (None,))
]


@pytest.mark.parametrize("kind", list(LayerKind))
@pytest.mark.parametrize(("position", "route", "option"), CASES)
def test_the_future_never_changes_the_past(small, tokens, position, route, option, kind):
    placement = Placement(position=position, route=route, option=option)
    model = LanguageModel(small(positions=(placement,), layer=kind)).double()
    changed = tokens.clone()
    changed[:, 7:] = (changed[:, 7:] + 1) % 11
    before, after = model(tokens), model(changed)
    assert torch.equal(before[:, :7], after[:, :7])
    assert not torch.equal(before[:, 7:], after[:, 7:])


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("norm", ["pre", "post", "none"])
def test_the_future_never_changes_the_past_with_any_norm_and_mask(small, tokens, norm, masked):
    positions = [each for each in Position if norm != "none" or each != "before_norm"]
    model = LanguageModel(small(positions=positions, stabilizer={"norm": norm})).double()
    mask = torch.arange(12) < torch.tensor([[12], [9], [12]]) if masked else None
    changed = tokens.clone()
    changed[:, 7:] = (changed[:, 7:] + 1) % 11
    assert torch.equal(model(tokens, mask)[:, :7], model(changed, mask)[:, :7])


@pytest.mark.parametrize("scheme", ["explicit", "backward_euler", "crank_nicolson", "exact"])
def test_refuses_a_symmetric_layer(small, scheme):
    with pytest.raises(ValueError, match=r"`scheme` must be 'upwind'.*causal layer"):
        LanguageModel(small(positions=("after_ffn",), layer={"scheme": scheme}))


def test_a_plane_has_no_past(small):
    with pytest.raises(ValueError, match=r"`scheme` must be 'explicit' or 'exact' over a grid"):
        LanguageModel(small(positions=("after_ffn",), grid=(3, 4), geometry="plane"))


def test_logits_are_the_field_against_the_table(small, tokens):
    model = LanguageModel(small())
    field, _ = model.encoder(tokens)
    assert torch.equal(model(tokens), field @ model.encoder.embedding.weight.mT)


def test_generation_goes_on_with_the_likeliest_token(small, tokens):
    model = LanguageModel(small(positions=("after_embedding",)), generator=torch.Generator())
    out = model.generate(tokens[:, :4], 5)
    assert out.shape == (3, 9)
    assert torch.equal(out[:, :4], tokens[:, :4])
    assert torch.equal(out[:, 4:], model(out)[:, 3:-1].argmax(dim=-1))


@pytest.mark.parametrize("kind", list(LayerKind))
@pytest.mark.parametrize(("position", "route", "option"), CASES)
def test_going_on_site_by_site_equals_the_whole(small, tokens, position, route, option, kind):
    placement = Placement(position=position, route=route, option=option)
    model = LanguageModel(small(positions=(placement,), layer=kind)).double()
    cache = DecodeCache()
    parts = [model(tokens[:, :5], cache=cache)]
    parts += [model(tokens[:, i : i + 1], cache=cache) for i in range(5, 12)]
    torch.testing.assert_close(torch.cat(parts, dim=1), model(tokens), rtol=0, atol=1e-11)


@pytest.mark.parametrize("encoding", ["sinusoidal", "rotary", "none"])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_going_on_site_by_site_knows_the_sites(small, tokens, encoding, norm):
    layer = {"kind": "diffusion", "steps": 3, "dilation": 2}
    config = small(
        encoding=encoding, stabilizer={"norm": norm}, positions=tuple(Position), layer=layer
    )
    model, cache = LanguageModel(config).double(), DecodeCache()
    parts = [model(tokens[:, i : i + 1], cache=cache) for i in range(12)]
    torch.testing.assert_close(torch.cat(parts, dim=1), model(tokens), rtol=0, atol=1e-11)


def test_refuses_several_new_sites_and_a_mask_beside_the_past(small, tokens):
    model, cache = LanguageModel(small()), DecodeCache()
    model(tokens, cache=cache)
    with pytest.raises(ValueError, match=r"`u`.*12.*got 2"):
        LanguageModel(small(length=20, encoding="none"))(tokens[:, :2], cache=cache)
    with pytest.raises(ValueError, match=r"`cache`.*and without"):
        model(tokens, torch.ones_like(tokens, dtype=torch.bool), cache=DecodeCache())


def test_generation_by_chance_follows_its_generator(small, tokens):
    model = LanguageModel(small())
    draws = [
        model.generate(
            tokens[:, :4], 6, temperature=1.0, generator=torch.Generator().manual_seed(seed)
        )
        for seed in (0, 0, 1)
    ]
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])


def test_refuses_what_a_language_model_cannot_be(small, tokens):
    with pytest.raises(ValueError, match=r"`input`.*'token'.*got linear"):
        LanguageModel(small(input="linear"))
    with pytest.raises(ValueError, match=r"`pooling` must not be 'cls'.*language model"):
        LanguageModel(small(pooling="cls"))
    with pytest.raises(ValueError, match=r"`new_tokens` must be at least 1"):
        LanguageModel(small()).generate(tokens, 0)
    with pytest.raises(ValueError, match=r"`temperature` must lie in"):
        LanguageModel(small()).generate(tokens, 1, temperature=-1.0)


def test_a_language_task_makes_the_model_that_fits_it():
    from depthpde.data.tasks import TASKS
    from depthpde.models.config import ModelConfig

    tasks = [task for task in TASKS.values() if task.kind == "language"]
    assert tasks
    model = LanguageModel(ModelConfig(dim=8, blocks=1), tasks[0])
    assert (model.config.vocabulary, model.config.causal) == (tasks[0].vocabulary, True)


@pytest.mark.parametrize("steps", [1, 3])
def test_going_on_site_by_site_keeps_to_its_row(small, tokens, steps):
    layer = {"kind": "diffusion", "steps": steps}
    config = small(grid=(3, 4), geometry="rows", positions=tuple(Position), layer=layer)
    model, cache = LanguageModel(config).double(), DecodeCache()
    parts = [model(tokens[:, :5], cache=cache)]
    parts += [model(tokens[:, i : i + 1], cache=cache) for i in range(5, 12)]
    torch.testing.assert_close(torch.cat(parts, dim=1), model(tokens), rtol=0, atol=1e-11)
