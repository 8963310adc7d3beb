import pytest
import torch

from depthpde.layers.registry import LayerKind
from depthpde.models.classifier import Classifier
from depthpde.models.position import Position
from depthpde.seeds import generator


@pytest.mark.parametrize("kind", list(LayerKind))
def test_shared_parameters_start_from_the_same_numbers_whatever_is_placed(small, kind):
    bare = Classifier(small(), generator=generator(3, "init")).state_dict()
    placed = Classifier(
        small(positions=tuple(Position), layer=kind), generator=generator(3, "init")
    ).state_dict()
    added = set(placed) - set(bare)
    assert set(bare) <= set(placed)
    assert all(".placed." in name for name in added)
    for name, numbers in bare.items():
        assert torch.equal(placed[name], numbers), name


def test_another_seed_gives_other_numbers(small):
    first, second = (Classifier(small(), generator=generator(s, "init")) for s in (0, 1))
    for (name, a), b in zip(first.named_parameters(), second.parameters(), strict=True):
        drawn = not name.endswith("bias") and "norm" not in name
        assert torch.equal(a, b) != drawn, name


def test_every_parameter_has_a_stream_of_its_own(small):
    model = Classifier(small(), generator=generator(0, "init"))
    blocks = model.encoder.blocks
    assert not torch.equal(blocks[0].attention.query.weight, blocks[1].attention.query.weight)
    assert not torch.equal(blocks[0].attention.query.weight, blocks[0].attention.key.weight)


def test_with_a_generator_torchs_own_stream_is_left_alone(small):
    torch.manual_seed(0)
    wanted = torch.rand(3)
    torch.manual_seed(0)
    Classifier(small(), generator=generator(0, "init"))
    assert torch.equal(torch.rand(3), wanted)


def test_without_a_generator_torchs_own_seed_decides(small):
    models = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        models.append(Classifier(small()).head.weight)
    assert torch.equal(models[0], models[1])
    assert not torch.equal(models[0], models[2])


def test_deepnorm_starts_the_branches_smaller(small):
    deep = {"norm": "post", "deepnorm": True}
    models = [
        Classifier(small(blocks=2, stabilizer=each), generator=generator(0, "init"))
        for each in ({"norm": "post"}, deep)
    ]
    plain, scaled = (each.encoder.blocks[1] for each in models)
    for name in ("attention.value", "attention.out", "reaction.enter", "reaction.out"):
        ratio = scaled.get_submodule(name).weight / plain.get_submodule(name).weight
        torch.testing.assert_close(ratio, torch.full_like(ratio, 0.5), rtol=0, atol=1e-5)
    assert torch.equal(scaled.attention.query.weight, plain.attention.query.weight)
    assert scaled.add.gain == pytest.approx(2**0.5)


def test_weights_have_the_spread_they_are_said_to_have(small):
    model = Classifier(small(dim=128, vocabulary=1000), generator=generator(0, "init"))
    weight = model.encoder.blocks[0].reaction.enter.weight
    assert weight.std().item() == pytest.approx((2 / (128 + 16)) ** 0.5, rel=0.05)
    assert model.encoder.embedding.weight.std().item() == pytest.approx(128**-0.5, rel=0.05)


@pytest.mark.parametrize("interaction", ["lstm", "convolution"])
def test_networks_without_attention_start_from_their_seed_with_that_spread(small, interaction):
    config = small(dim=64, heads=1, interaction=interaction, grid=(3, 4))
    first, again, other = (Classifier(config, generator=generator(k, "init")) for k in (0, 0, 1))
    mixing = first.encoder.blocks[0].attention
    for name, weight in mixing.named_parameters():
        twin, stranger = (e.encoder.blocks[0].attention.get_parameter(name) for e in (again, other))
        assert torch.equal(weight, twin)
        if "bias" in name:
            continue
        assert not torch.equal(weight, stranger)
        fans = weight.shape[1:].numel() + 64 * weight.shape[2:].numel()
        assert weight.std().item() == pytest.approx((2 / fans) ** 0.5, rel=0.05)
    if interaction == "lstm":
        assert mixing.forth.bias_ih_l0.view(4, 64).mean(dim=1).tolist() == [0, 1, 0, 0]
        assert not mixing.forth.bias_hh_l0.any()


def test_a_model_builds_on_the_meta_device(small):
    with torch.device("meta"):
        model = Classifier(small(positions=("after_ffn",)), generator=torch.Generator())
    assert all(each.device.type == "meta" for each in model.parameters())
