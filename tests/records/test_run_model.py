import pytest

from depthpde.models.classifier import Classifier
from depthpde.models.config import ModelConfig
from depthpde.models.position import Position
from depthpde.records.run_model import (
    DIFFUSIVE,
    POSITIONS,
    SCALES,
    VariantRole,
    placements,
    position_of,
    role_of,
    site_of,
)


def config_of(**printed):
    return {"model": ModelConfig(dim=8, blocks=2, heads=2, **printed).to_dict()}


def test_positions_and_scales_are_those_of_the_models():
    from depthpde.layers.multiscale import SCALES as THEIRS

    assert list(POSITIONS) == [each.value for each in Position]
    assert {name: each.steps for name, each in THEIRS.items()} == SCALES


def test_reads_every_form_in_which_a_config_writes_a_placement():
    config = config_of(
        positions=["in_heads", {"position": "after_ffn", "layer": {"kind": "blur", "steps": 2}}],
        layer={"kind": "diffusion", "steps": 3},
    )
    one, two = placements(config)
    assert (one.position, one.kind, one.settings["steps"]) == ("in_heads", "diffusion", 3)
    assert (two.position, two.kind, two.settings["steps"]) == ("after_ffn", "blur", 2)


@pytest.mark.parametrize("config", [{}, {"model": 3}, {"model": {"positions": "x"}}])
def test_a_config_that_cannot_be_read_places_nothing(config):
    assert placements(config) == ()
    assert role_of(config, config) is VariantRole.OTHER
    assert position_of(config) is None


@pytest.mark.parametrize("kind", ["diffusion", "multiscale", "depthwise_conv", "blur"])
def test_only_diffusion_is_ours_and_only_it_stands_for_a_position(kind):
    config = config_of(positions=["after_ffn"], layer=kind)
    ours = kind in DIFFUSIVE
    assert role_of(config, config_of()) is (VariantRole.OURS if ours else VariantRole.CONTROL)
    assert position_of(config) == ("after_ffn" if ours else None)


@pytest.mark.parametrize(
    ("changes", "role"),
    [
        ({"model": {"encoding": "rotary"}}, VariantRole.CONTROL),
        ({"model": {"stabilizer": {"norm": "none"}}}, VariantRole.OTHER),
        ({"model": {"dim": 16}}, VariantRole.OTHER),
        ({"simulator": {"method": "lie", "diffusion": 0.1}}, VariantRole.OURS),
        ({"simulator": {"method": "lie", "diffusion": 0.0}}, VariantRole.OTHER),
        ({"simulator": None}, VariantRole.OTHER),
    ],
)
def test_what_places_nothing_is_told_by_what_else_differs(changes, role):
    baseline = config_of(encoding="learned")
    model = baseline["model"] | changes.get("model", {})
    assert role_of(baseline | changes | {"model": model}, baseline) is role


def test_several_positions_stand_for_none():
    assert position_of(config_of(positions=["after_ffn", "in_heads"])) is None


def test_finds_every_learned_ratio_of_a_real_model():
    from depthpde.layers.ratio import BoundedRatio

    config = ModelConfig(
        dim=8, blocks=2, heads=2, vocabulary=5, length=9, classes=3,
        positions=[each.value for each in Position],
    )  # fmt: skip
    names = [
        name for name, each in Classifier(config).named_modules() if isinstance(each, BoundedRatio)
    ]
    sites = [site_of(name) for name in names]
    assert {site.position for site in sites} == set(POSITIONS)
    assert len(set(sites)) == len(names) == 15
    assert {site.block for site in sites} == {-1, 0, 1}
    words = {site.words for site in sites}
    assert {"after embedding", "block 1 · before norm (attention)", "block 2 · in heads"} <= words


def test_the_members_of_a_multiscale_layer_are_told_apart():
    site = site_of("encoder.placed.layers.after_embedding.layer.members.2.free")
    assert (site.position, site.scale) == ("after_embedding", 2)
    assert site.words == "after embedding · scale 3"
    assert site_of("encoder.head.weight") is None
