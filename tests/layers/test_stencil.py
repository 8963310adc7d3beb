"""The learned stencil: its start, its bounds for every parameter, its walls, its names."""

from __future__ import annotations

import pytest
import torch

from depthpde import Diffusion, LearnedStencil
from depthpde.layers.transfer import measure_transfer

DTYPE = torch.float64
VALID = torch.arange(40)[None] < torch.tensor([[40], [11], [1]])
FORMS = {
    "l1": {},
    "symmetric": {"symmetric": True},
    "convex": {"bound": "convex"},
    "convex symmetric": {"bound": "convex", "symmetric": True},
    "free": {"bound": None},
    "causal": {"causal": True},
    "causal convex": {"causal": True, "bound": "convex"},
}


def field(length=40):
    generator = torch.Generator().manual_seed(length)
    return torch.randn(3, length, 4, generator=generator, dtype=DTYPE)


def shaken(**options):
    layer = LearnedStencil(4, dtype=DTYPE, **options)
    with torch.no_grad():
        layer.theta.add_(
            2 * torch.randn(layer.theta.shape, generator=torch.Generator().manual_seed(3))
        )
    return layer


@pytest.mark.parametrize("form", FORMS)
def test_starts_as_heat_flow(form):
    causal = "causal" in form
    layer = LearnedStencil(4, dtype=DTYPE, **FORMS[form])
    flow = Diffusion(4, steps=16, causal=causal, dtype=DTYPE)
    torch.testing.assert_close(layer(field(), VALID), flow(field(), VALID), rtol=0, atol=1e-9)
    blur = LearnedStencil(4, start="blur", start_ratio=0.2, dtype=DTYPE, **FORMS[form])
    step = Diffusion(4, initial_ratio=0.2, causal=causal, dtype=DTYPE)
    torch.testing.assert_close(blur(field(), VALID), step(field(), VALID), rtol=0, atol=1e-9)


def test_starts_as_the_identity_to_the_bit():
    for form in ({}, {"symmetric": True}, {"causal": True}, {"bound": None}):
        layer = LearnedStencil(4, start="identity", dtype=DTYPE, **form)
        assert torch.equal(layer(field(), VALID), field())


@pytest.mark.parametrize("form", [name for name in FORMS if name != "free"])
def test_raises_no_maximum_for_any_parameter(form):
    layer, u = shaken(**FORMS[form]), field()
    assert layer(u, VALID).abs().max() <= u.abs().max() * (1 + 1e-12)
    assert layer.taps.abs().sum(dim=0).max() <= 1 + 1e-12


def test_free_taps_do_raise_it():
    layer, u = shaken(bound=None), field()
    assert layer(u).abs().max() > 5 * u.abs().max()


def test_convex_symmetric_taps_conserve_the_mean_of_every_sequence():
    layer, u = shaken(bound="convex", symmetric=True), field()
    for b, n in enumerate((40, 11, 1)):
        before, after = u[b, :n].mean(dim=0), layer(u, VALID)[b, :n].mean(dim=0)
        torch.testing.assert_close(after, before, rtol=0, atol=1e-13)


@pytest.mark.parametrize("form", FORMS)
def test_padding_and_segments_are_walls(form):
    layer, u = shaken(**FORMS[form]), field()
    filled = u.masked_fill(~VALID[..., None], torch.nan)
    out = layer(filled, VALID)
    torch.testing.assert_close(out[1:2, :11], layer(u[1:2, :11]), rtol=0, atol=1e-13)
    assert torch.isnan(out[~VALID]).all()
    segments = torch.tensor([[0] * 7 + [1] * 20 + [2] * 13]).expand(3, -1)
    apart = torch.cat([layer(part) for part in u.split([7, 20, 13], dim=1)], dim=1)
    torch.testing.assert_close(layer(u, segments=segments), apart, rtol=0, atol=1e-13)


def test_causal_taps_never_see_the_future():
    layer, u = shaken(causal=True), field()
    changed = torch.cat((u[:, :20], u[:, 20:] + 1), dim=1)
    assert torch.equal(layer(u)[:, :20], layer(changed)[:, :20])


@pytest.mark.parametrize("form", FORMS)
def test_transfer_function_is_what_is_measured(form):
    layer, omega = shaken(**FORMS[form]), torch.linspace(0, 3, 7, dtype=DTYPE)
    torch.testing.assert_close(layer.transfer_function(omega), measure_transfer(layer, omega))


def test_acts_along_both_axes_of_an_image():
    layer = shaken(reach=3, grid=(5, 8))
    along, u = shaken(reach=3), field()
    rows = along(u.reshape(15, 8, 4)).reshape(3, 5, 8, 4).transpose(1, 2)
    both = along(rows.reshape(24, 5, 4)).reshape(3, 8, 5, 4).transpose(1, 2)
    torch.testing.assert_close(layer(u), both.reshape(u.shape), rtol=0, atol=1e-13)
    hole = torch.ones(3, 40, dtype=torch.bool)
    hole[:, 13] = False
    first, second = (layer(u.masked_fill(~hole[..., None], beyond), hole) for beyond in (1.0, 7.0))
    assert torch.equal(first[hole], second[hole])


def test_learns_with_the_gain_of_ratios_and_is_known_by_name():
    from depthpde import ModelConfig, TrainingConfig
    from depthpde.models.classifier import Classifier
    from depthpde.training.optimizer import build_optimizer

    model = Classifier(
        ModelConfig(
            dim=8, heads=2, hidden=8, vocabulary=8, length=20, classes=2,
            positions=("after_embedding",), layer={"kind": "learned_stencil", "steps": 4},
        )
    )  # fmt: skip
    (stencil,) = (each for each in model.modules() if isinstance(each, LearnedStencil))
    assert stencil.reach == 4
    config = TrainingConfig()
    groups = build_optimizer(model, config).param_groups
    (mine,) = (g for g in groups if any(each is stencil.theta for each in g["params"]))
    assert mine["gain"] == config.ratio_gain


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bound": "convex", "start": "identity"}, "'heat' or 'blur' for convex taps, got 'ident"),
        ({"causal": True, "symmetric": True}, "`causal` must be False with `symmetric`"),
        ({"causal": True, "grid": (2, 2)}, "`causal` must be False with `symmetric` or `grid`"),
        ({"reach": 0}, "`reach` must be at least 1, got 0"),
        ({"bound": "l2"}, "`bound` must be one of l1, convex, free, got 'l2'"),
        ({"start_ratio": 0.6}, r"`start_ratio` must lie in \[0, 0.5\], got 0.6"),
    ],
)
def test_refuses_what_has_no_meaning(options, message):
    with pytest.raises(ValueError, match=message):
        LearnedStencil(4, **options)


def test_refuses_segments_a_wrong_size_and_one_frequency_over_a_grid():
    layer = LearnedStencil(4, grid=(5, 7))
    with pytest.raises(ValueError, match=r"must be left out over a grid.*use valid_mask"):
        layer(torch.zeros(1, 35, 4), segments=torch.zeros(1, 35, dtype=torch.long))
    with pytest.raises(ValueError, match=r"as many sites as the field, 40, got 5 × 7 = 35"):
        layer(torch.zeros(1, 40, 4))
    with pytest.raises(ValueError, match="a grid has two"):
        layer.transfer_function(torch.zeros(1))


def test_describes_itself():
    assert "reach=16, l1, start=heat, 132 parameters" in repr(LearnedStencil(4))
    assert repr(LearnedStencil(4, bound=None)) == repr(LearnedStencil(4, bound="free"))
    assert "free" in repr(LearnedStencil(4, bound="free"))
