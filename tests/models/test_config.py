import dataclasses
import json
from types import SimpleNamespace

import pytest

from depthpde.layers.multiscale import DiffusionScale
from depthpde.layers.registry import LayerConfig, LayerKind
from depthpde.layers.stabilizer import Stabilizer
from depthpde.models.classifier import Classifier
from depthpde.models.config import Geometry, ModelConfig
from depthpde.models.placement import Placement
from depthpde.models.position import OPTIONS, ROUTES, Option, Position, Route

OWN_LAYER = {"position": "after_ffn", "layer": "blur"}
CONFIGS = [
    ModelConfig(),
    ModelConfig(dim=128, blocks=4, positions=("after_embedding",), layer="multiscale"),
    ModelConfig(positions=tuple(Position), layer="adaptive", schedule="decaying"),
    ModelConfig(stabilizer=Stabilizer(norm="post", kind="rms", deepnorm=True)),
    ModelConfig(grid=(4, 5), geometry="rows", input="linear", pooling="cls", encoding="rotary"),
    ModelConfig(
        positions=(
            "after_ffn",
            Placement(position="in_attention", option="weights", layer="blur"),
            {"position": "before_norm", "route": "stream", "layer": {"kind": "blur", "steps": 3}},
        ),
        layer=LayerConfig(kind="diffusion", scheme="backward_euler", steps=2, bound=0.5),
    ),
    ModelConfig(
        positions=["between_blocks"],
        layer={"kind": "multiscale", "scales": [{"steps": 1}, {"steps": 1, "dilation": 8}]},
    ),
    ModelConfig(positions=["after_ffn"], layer=LayerConfig(kind="depthwise_conv", start="blur")),
]


@pytest.mark.parametrize("config", CONFIGS)
def test_a_config_survives_json(config):
    output = json.loads(json.dumps(config.to_dict()))
    assert ModelConfig.from_dict(output) == config


@pytest.mark.parametrize("config", CONFIGS)
def test_a_config_can_be_changed_in_one_field(config):
    changed = dataclasses.replace(config, dropout=0.25)
    assert changed.dropout == 0.25
    assert changed.to_dict() == {**config.to_dict(), "dropout": 0.25}


def test_the_simple_case_is_written_simply():
    config = ModelConfig(positions=("after_embedding",), layer="multiscale")
    assert config.to_dict()["positions"] == ["after_embedding"]
    assert config.to_dict()["layer"] == "multiscale"


def test_every_field_has_a_line_under_it():
    import inspect

    source = inspect.getsource(ModelConfig)
    for field in dataclasses.fields(ModelConfig):
        line = source.split(f"\n    {field.name}: ")[1].split("\n")[1]
        assert line.strip().startswith('"""'), field.name


@pytest.mark.parametrize("position", list(Position))
def test_each_position_has_its_own_defaults(position):
    (placement,) = ModelConfig(positions=(position,)).placements
    assert placement.route is ROUTES[position][0]
    assert placement.option == (OPTIONS[position][0] if position in OPTIONS else None)
    assert placement.layer == LayerConfig()


def test_one_position_alone_is_a_sequence_of_one():
    assert ModelConfig(positions="after_ffn") == ModelConfig(positions=("after_ffn",))
    assert ModelConfig(positions=Position.AFTER_FFN).to_dict()["positions"] == ["after_ffn"]


def test_a_placement_overrides_the_config():
    config = ModelConfig(
        positions=(Placement(position="after_ffn", route="branch", layer="blur"), "before_norm"),
        route="stream",
        layer="adaptive",
    )
    first, second = config.placements
    assert (first.route, first.layer.kind) == (Route.BRANCH, LayerKind.BLUR)
    assert (second.route, second.layer.kind) == (Route.STREAM, LayerKind.ADAPTIVE)


def test_changing_the_layer_changes_every_placement_that_left_it_open():
    config = dataclasses.replace(ModelConfig(positions=("after_ffn",)), layer="blur")
    assert config.placements[0].layer.kind is LayerKind.BLUR


def test_the_ratio_decays_with_depth_where_asked():
    config = ModelConfig(blocks=4, schedule="decaying")
    assert [config.ratio_gain(block) for block in (None, 0, 1, 2, 3)] == [1, 1, 0.75, 0.5, 0.25]
    assert ModelConfig(blocks=4).ratio_gain(3) == 1


def test_patches_live_on_a_plane_and_all_else_on_a_line():
    assert ModelConfig().neighbours is Geometry.LINE
    assert ModelConfig(input="patch").neighbours is Geometry.PLANE
    assert ModelConfig(input="patch", geometry="line").neighbours is Geometry.LINE


def task(**changes):
    known = {"kind": "sequence", "length": 100, "vocabulary": 16, "classes": 10, "grid": None}
    return SimpleNamespace(**{**known, **changes})


def test_a_task_fills_in_what_it_knows():
    fitted = ModelConfig().fit(task())
    assert (fitted.vocabulary, fitted.length, fitted.classes) == (16, 100, 10)
    assert fitted.documents == 1
    assert ModelConfig().fit(task(kind="pair")).documents == 2
    image = ModelConfig(input="patch", patch=4).fit(task(grid=(16, 8), length=128))
    assert (image.grid, image.length, image.vocabulary) == ((4, 2), 8, None)


def test_a_real_task_fills_in_what_it_knows():
    from depthpde.data.tasks import TASKS

    for each in TASKS.values():
        fitted = ModelConfig().fit(each)
        assert (fitted.vocabulary, fitted.length) == (each.vocabulary, each.length)
        assert fitted.grid == each.grid


def test_refuses_a_task_that_contradicts_the_config():
    with pytest.raises(ValueError, match=r"`vocabulary`.*16.*got 20"):
        ModelConfig(vocabulary=20).fit(task())
    with pytest.raises(ValueError, match=r"`length`.*100.*got 50"):
        ModelConfig(length=50).fit(task())
    assert ModelConfig(length=200).fit(task()).length == 200
    with pytest.raises(ValueError, match=r"`documents`.*1.*got 2"):
        ModelConfig(documents=2).fit(task())
    with pytest.raises(ValueError, match=r"`patch` must divide the sides.*got 5 and grid \(8, 8\)"):
        ModelConfig(input="patch", patch=5).fit(task(grid=(8, 8)))


def test_refuses_unknown_keys_and_names_the_nearest():
    with pytest.raises(ValueError, match=r"`config key` must be one of.*did you mean 'positions'"):
        ModelConfig.from_dict({"position": ["after_ffn"]})
    with pytest.raises(ValueError, match=r"`layer key` must be.*did you mean 'steps'"):
        ModelConfig(layer={"kind": "diffusion", "step": 3})
    with pytest.raises(ValueError, match=r"`positions key` must be.*did you mean 'route'"):
        ModelConfig(positions=[{"position": "after_ffn", "rout": "stream"}])
    with pytest.raises(ValueError, match=r"`stabilizer key` must be.*did you mean 'norm'"):
        ModelConfig(stabilizer={"norms": "post"})
    with pytest.raises(ValueError, match=r"`scales key` must be.*did you mean 'steps'"):
        LayerConfig(kind="multiscale", scales=[{"step": 3}])
    with pytest.raises(ValueError, match=r"`stabilizer`.*got 'pre'"):
        ModelConfig(stabilizer="pre")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"heads": 3}, r"`heads` must divide `dim`, got 3 heads and dim 64"),
        ({"dim": 0}, r"`dim` must be at least 1, got 0"),
        ({"blocks": 1.5}, r"`blocks` must be a whole number"),
        ({"hidden": 0}, r"`hidden` must be at least 1"),
        ({"dropout": 2}, r"`dropout` must lie in \[0, 1\], got 2"),
        ({"documents": 3}, r"`documents` must lie in \[1, 2\]"),
        ({"causal": 1}, r"`causal` must be True or False, got 1"),
        ({"dim": 6, "heads": 2, "encoding": "rotary"}, r"must not be rotary where dim / heads is"),
        ({"dim": 7, "heads": 1, "encoding": "sinusoidal"}, r"`dim` must be even for sinusoidal"),
        ({"positions": 3}, r'a sequence of positions, got 3; write a list.*\["after_embedding"\]'),
        ({"positions": {"position": "after_ffn"}}, r"a sequence of positions, got \{'position'"),
        ({"positions": "after_fnn"}, r"`positions` must be one of.*did you mean 'after_ffn'"),
        ({"positions": ["after_fnn"]}, r"`positions` must be one of.*did you mean 'after_ffn'"),
        ({"positions": ["after_ffn"] * 2}, r"name each position once, got 'after_ffn' 2 times"),
        ({"positions": ["after_embedding"], "route": "branch"}, r"`route` must be one of stream"),
        (
            {"positions": ["before_norm"], "stabilizer": {"norm": "none"}},
            r"leave out 'before_norm' where there is no norm",
        ),
        ({"layer": "difusion"}, r"`layer` must be one of.*did you mean 'diffusion'"),
        ({"route": "steam"}, r"`route` must be one of.*did you mean 'stream'"),
        ({"geometry": "plain"}, r"`geometry` must be one of.*did you mean 'plane'"),
        ({"grid": (3, 4, 5)}, r"`grid` must be rows and columns"),
        ({"grid": (3, 4), "length": 10}, r"`grid` must have as many sites as `length`"),
        (
            {"positions": ["after_ffn"], "layer": "depthwise_conv", "schedule": "decaying"},
            r"`schedule` must be constant for a layer that starts as the identity",
        ),
        (
            {
                "positions": ["after_ffn"],
                "layer": {"initial_ratio": 0.0},
                "schedule": "decaying",
            },
            r"`schedule` must be constant for a layer that starts as the identity",
        ),
        (
            {"positions": ["after_ffn"], "layer": {"initial_ratio": 0.4}},
            r"`initial_ratio` must lie in \[0, 0.25\]",
        ),
        (
            {"positions": ["after_ffn"], "layer": {"scheme": "explicit"}, "causal": True},
            r"`scheme` must be 'upwind' in a causal layer",
        ),
        (
            {"positions": ["after_ffn"], "layer": "blur", "grid": (4, 4), "geometry": "plane"},
            r"`geometry` must be 'line' or 'rows' for the layer 'blur', got 'plane'",
        ),
        ({"interaction": "lstm", "causal": True}, r"`causal` must be False.*'lstm'.*attention"),
        ({"interaction": "lstm", "encoding": "rotary"}, r"`encoding` must not be rotary"),
        ({"interaction": "lstm", "attention_dropout": 0.1}, r"`attention_dropout` must be 0"),
        ({"interaction": "lstm", "positions": ["in_heads"]}, r"`positions`.*'in_heads'.*'lstm'"),
        ({"interaction": "convolution", "pooling": "cls"}, r"`pooling` must not be cls.*grid"),
        ({"interaction": "lsmt"}, r"`interaction` must be.*did you mean 'lstm'"),
    ],
)
def test_refuses_a_config_that_contradicts_itself(settings, message):
    with pytest.raises(ValueError, match=message):
        ModelConfig(**settings)


def test_attention_is_what_is_meant_where_nothing_is_named():
    assert ModelConfig(interaction="attention") == ModelConfig()
    assert ModelConfig(interaction="lstm") != ModelConfig()


def test_a_convolution_needs_its_grid():
    config = ModelConfig(interaction="convolution", vocabulary=9, length=16, classes=2)
    with pytest.raises(ValueError, match=r"`grid` must be known"):
        Classifier(config)


@pytest.mark.parametrize("layer", list(LayerKind))
def test_a_layer_that_is_placed_nowhere_is_checked_and_changes_no_name(layer):
    config = ModelConfig(layer=layer)
    assert config.to_dict() == {**ModelConfig().to_dict(), "layer": layer.value}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"layer": {"bound": 9}}, r"`bound` must lie in \[1e-12, 0.5\], got 9"),
        ({"layer": {"scheme": "explicit"}, "causal": True}, r"`scheme` must be 'upwind' in a"),
        ({"layer": "depthwise_conv", "schedule": "decaying"}, r"`schedule` must be constant for"),
        ({"layer": {"bound": 9}, "positions": [OWN_LAYER]}, r"`bound` must lie in"),
    ],
)
def test_refuses_a_layer_that_cannot_be_built_even_where_it_is_not_placed(settings, message):
    with pytest.raises(ValueError, match=message):
        ModelConfig(**settings)


def test_where_nothing_is_placed_and_no_layer_was_named_there_is_nothing_to_refuse():
    config = ModelConfig(causal=True, input="patch", grid=(4, 4))
    with pytest.raises(ValueError, match=r"`scheme` must be 'explicit' or 'exact' over a grid"):
        dataclasses.replace(config, positions=("after_ffn",))


def test_refuses_a_setting_that_the_layer_does_not_take():
    with pytest.raises(ValueError, match=r"`dilation`.*layer 'blur'.*steps"):
        LayerConfig(kind="blur", dilation=2)
    with pytest.raises(ValueError, match=r"`scales`.*or dilation"):
        LayerConfig(kind="multiscale", scales=(DiffusionScale(), DiffusionScale()))


def test_refuses_an_option_that_the_position_does_not_have():
    with pytest.raises(ValueError, match=r"`option`.*at 'after_ffn'.*in_heads have"):
        Placement(position="after_ffn", option=Option.VALUES)
    with pytest.raises(ValueError, match=r"`option` must be one of values.*got 'across_heads'"):
        Placement(position="in_attention", option="across_heads")


def test_refuses_to_build_what_is_not_known():
    with pytest.raises(ValueError, match=r"`classes`.*the model"):
        ModelConfig().check_complete("classes")
    with pytest.raises(ValueError, match=r"`grid` must be known"):
        ModelConfig(geometry="rows").check_complete()
