import pytest
import torch

from depthpde.layers.stabilizer import Dropout, Norm, NormKind, Residual, Stabilizer, build_norm
from depthpde.operators.stabilizer import layer_norm, rms_norm


@pytest.mark.parametrize(("kind", "operator"), [("layer", layer_norm), ("rms", rms_norm)])
def test_a_norm_is_the_projection_of_its_name(kind, operator):
    u = torch.randn(2, 5, 8, dtype=torch.float64)
    norm = build_norm(kind, 8, dtype=torch.float64)
    torch.testing.assert_close(norm(u), operator(u), rtol=0, atol=1e-12)


def test_the_residual_step_adds_scales_or_replaces():
    u, v = torch.randn(2, 3, 4), torch.randn(2, 3, 4)
    assert torch.equal(Residual()(u, v), u + v)
    assert torch.equal(Residual(gain=1.5)(u, v), 1.5 * u + v)
    assert torch.equal(Residual(on=False)(u, v), v)


def test_residual_dropout_thins_the_increment_in_training_only():
    step, u, v = Residual(dropout=0.5), torch.zeros(1, 100, 10), torch.ones(1, 100, 10)
    torch.manual_seed(0)
    assert set(step(u, v).unique().tolist()) == {0.0, 2.0}
    assert torch.equal(step.eval()(u, v), v)


def test_deepnorm_scales_with_depth_as_published():
    deep = Stabilizer(norm="post", deepnorm=True)
    assert deep.stream_gain(8) == pytest.approx(2.0)
    assert deep.branch_gain(2) == pytest.approx(0.5)
    assert (Stabilizer().stream_gain(8), Stabilizer().branch_gain(8)) == (1.0, 1.0)


def test_names_become_members():
    stabilizer = Stabilizer(norm="none", kind="rms")
    assert (stabilizer.norm, stabilizer.kind) == (Norm.NONE, NormKind.RMS)


@pytest.mark.parametrize(
    "wrong", [{"norm": "pre"}, {"norm": "none"}, {"norm": "post", "residual": False}]
)
def test_refuses_deepnorm_without_residual_and_post_norm(wrong):
    with pytest.raises(ValueError, match="`deepnorm` must go with `residual` and the post-norm"):
        Stabilizer(deepnorm=True, **wrong)


def test_refuses_what_it_does_not_know():
    with pytest.raises(ValueError, match=r"`norm`.*got 'pro'"):
        Stabilizer(norm="pro")
    with pytest.raises(ValueError, match=r"`kind`.*got 'batch'"):
        build_norm("batch", 4)
    with pytest.raises(ValueError, match=r"`residual`.*got 'yes'"):
        Stabilizer(residual="yes")
    with pytest.raises(ValueError, match=r"`dropout` must lie in"):
        Residual(dropout=2)


def test_says_how_the_step_is_taken():
    assert "gain=1.5, on=True, dropout=0.0" in repr(Residual(gain=1.5))


def test_dropout_is_torchs_module_from_one_seed_and_still_in_evaluation():
    layer, u = Dropout(0.5), torch.randn(16, 16)
    assert isinstance(layer, torch.nn.Dropout)
    out = layer(u)
    assert torch.equal(out[out != 0], 2 * u[out != 0])
    assert 0 < int((out == 0).sum()) < u.numel()
    assert layer.eval()(u) is u
