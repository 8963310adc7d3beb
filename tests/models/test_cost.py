import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from depthpde.layers.registry import LayerKind
from depthpde.models.classifier import Classifier
from depthpde.models.config import ModelConfig
from depthpde.models.cost import cost
from depthpde.models.encoder import Encoder
from depthpde.models.language import LanguageModel
from depthpde.models.placement import Placement
from depthpde.models.position import OPTIONS, ROUTES, Position
from depthpde.models.vision import VisionTransformer

SIZES = {
    "dim": 32, "heads": 4, "hidden": 48, "vocabulary": 16, "length": 64, "classes": 10,
}  # fmt: skip
MODELS = [
    {},
    {"blocks": 3, "encoding": "sinusoidal"},
    {"encoding": "rotary", "activation": "relu"},
    {"encoding": "rotary", "heads": 2},
    {"encoding": "rotary", "heads": 8},
    {"encoding": "none", "stabilizer": {"norm": "post", "kind": "rms"}},
    {"stabilizer": {"norm": "post", "deepnorm": True}, "activation": "silu"},
    {"stabilizer": {"norm": "none", "residual": False}},
    {"stabilizer": {"kind": "rms"}, "pooling": "max"},
    {"pooling": "cls", "dropout": 0.1},
    {"input": "linear", "attention_dropout": 0.1},
    {"documents": 2},
    {"positions": tuple(Position)},
    {"positions": tuple(Position), "layer": {"kind": "multiscale", "gated": True}},
    {"positions": ("after_ffn",), "layer": {"kind": "depthwise_conv", "width": 5}},
    {"positions": ("in_heads",), "layer": {"per": "scalar"}},
]
NETWORKS = [
    {"interaction": "lstm", "encoding": "none"},
    {"interaction": "convolution", "grid": (8, 8), "encoding": "none"},
]
PLACED = [
    {"positions": (Placement(position=position, route=route, option=option),), "layer": kind}
    for position in Position
    for route in ROUTES[position]
    for option in OPTIONS.get(position, (None,))
    for kind in LayerKind
]


def inputs(config, batch=3, length=64):
    torch.manual_seed(0)
    tokens = torch.randint(16, (batch, length))
    return (tokens,) if config.documents == 1 else (tokens, None, tokens.flip(0), None)


def kept_bytes(model, *arguments):
    """Return what autograd keeps for backward, every storage once, parameters left out."""
    own = {each.untyped_storage().data_ptr() for each in model.parameters()}
    kept = {}

    def pack(saved):
        storage = saved.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes()
        return saved

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda saved: saved):
        model(*arguments)
    return sum(kept.values())


def counted(model, *arguments):
    """Return the multiply–adds of all matrix products, as torch counts them.

    The counter does not know the fused attention of the CPU, so attention runs as two products.
    """
    with (
        FlopCounterMode(display=False) as counter,
        sdpa_kernel(SDPBackend.MATH),
        torch.no_grad(),
    ):
        model(*arguments)
    return counter.get_total_flops() // 2


@pytest.mark.parametrize("settings", MODELS + NETWORKS + PLACED)
def test_parameters_are_exact(settings):
    config = ModelConfig(**SIZES | settings)
    model = Classifier(config)
    printed = cost(config).parameters
    assert printed.total == sum(each.numel() for each in model.parameters())
    placed = sum(each.numel() for name, each in model.named_parameters() if ".placed." in name)
    assert printed.placed == placed


@pytest.mark.parametrize("settings", [*MODELS[:13], NETWORKS[1]])  # torch counts no LSTM
def test_multiply_adds_of_matrices_are_what_torch_counts(settings):
    config = ModelConfig(**SIZES | settings)
    model = Classifier(config).eval()
    printed = cost(config, batch=3).multiply_adds
    assert printed.total - printed.placed == counted(model, *inputs(config))


@pytest.mark.parametrize("settings", MODELS + PLACED[:: len(LayerKind)])
def test_activation_memory_is_within_three_per_cent_of_what_autograd_keeps(settings):
    config = ModelConfig(**SIZES | settings)
    model = Classifier(config).train()
    printed = cost(config, batch=3).activation_bytes.total
    assert printed == pytest.approx(kept_bytes(model, *inputs(config)), rel=0.03)


@pytest.mark.parametrize("settings", NETWORKS)
def test_activation_memory_without_attention_is_within_three_per_cent(settings):
    config = ModelConfig(**SIZES | settings)
    printed = cost(config, batch=8).activation_bytes.total
    kept = kept_bytes(Classifier(config), *inputs(config, batch=8))
    assert printed == pytest.approx(kept, rel=0.03)


@pytest.mark.parametrize("kind", list(LayerKind))
def test_activation_memory_of_every_layer_is_within_five_per_cent(kind):
    config = ModelConfig(**SIZES, positions=("between_blocks", "in_attention"), layer=kind)
    printed = cost(config, batch=3).activation_bytes.total
    assert printed == pytest.approx(kept_bytes(Classifier(config), *inputs(config)), rel=0.05)


def test_a_language_model_is_told_too():
    config = ModelConfig(**SIZES, causal=True, positions=tuple(Position))
    model = LanguageModel(config)
    printed = cost(config, batch=3, head="language")
    assert printed.parameters.total == sum(each.numel() for each in model.parameters())
    kept = kept_bytes(model, *inputs(config))
    assert printed.activation_bytes.total == pytest.approx(kept, rel=0.03)
    printed = printed.multiply_adds
    assert printed.total - printed.placed == counted(model, *inputs(config))


def test_a_vision_model_is_told_too():
    config = ModelConfig(
        dim=32, heads=4, classes=5, input="patch", patch=2, channels=3, grid=(4, 6),
        positions=("after_embedding", "after_ffn"),
    )  # fmt: skip
    model, images = VisionTransformer(config), torch.randn(2, 3, 8, 12)
    printed = cost(config, batch=2)
    assert printed.parameters.total == sum(each.numel() for each in model.parameters())
    assert printed.activation_bytes.total == pytest.approx(kept_bytes(model, images), rel=0.03)
    printed = printed.multiply_adds
    assert printed.total - printed.placed == counted(model, images)


def test_an_encoder_alone_has_no_head():
    config = ModelConfig(**{**SIZES, "classes": None})
    printed = cost(config, head="none").parameters
    assert printed.total == sum(each.numel() for each in Encoder(config).parameters())


def test_a_shorter_sequence_costs_less():
    config = ModelConfig(**SIZES)
    short, full = cost(config, length=32), cost(config)
    assert short.parameters == full.parameters
    assert short.multiply_adds.reaction * 2 == full.multiply_adds.reaction
    assert short.activation_bytes.total < full.activation_bytes.total


def test_diffusion_is_a_small_part_of_the_operations_of_a_real_model():
    config = ModelConfig(
        dim=512, blocks=6, heads=8, vocabulary=257, length=4096, classes=2,
        positions=("between_blocks",), layer={"steps": 4},
    )  # fmt: skip
    printed = cost(config).multiply_adds
    assert printed.placed / printed.total < 0.003


def test_prints_one_term_a_line():
    lines = str(cost(ModelConfig(**SIZES))).splitlines()
    assert [line.split()[0] for line in lines[1:]] == [
        "embedding", "interaction", "reaction", "stabilizer", "placed", "head", "total",
    ]  # fmt: skip


def test_refuses_a_config_with_open_sizes():
    with pytest.raises(ValueError, match="`length` must be known"):
        cost(ModelConfig())
    with pytest.raises(ValueError, match="`classes` must be known"):
        cost(ModelConfig(length=4, vocabulary=4))
    with pytest.raises(ValueError, match=r"`head` must be one of.*did you mean 'classifier'"):
        cost(ModelConfig(**SIZES), head="classifer")
    with pytest.raises(ValueError, match="`batch` must be at least 1"):
        cost(ModelConfig(**SIZES), batch=0)
