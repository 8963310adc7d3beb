import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from depthpde.operators.stabilizer import layer_norm, project_to_sphere, remove_mean, rms_norm
from depthpde.seeds import generator


def draw(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=generator(0, "stabilizer"), dtype=torch.float64)


def test_layer_norm_equals_torch() -> None:
    u, gain, shift = draw(2, 5, 8), draw(8), draw(8)
    expected = functional.layer_norm(u, (8,), gain, shift)
    torch.testing.assert_close(layer_norm(u, gain, shift), expected)


def test_rms_norm_equals_torch() -> None:
    u, gain = draw(2, 5, 8), draw(8)
    expected = functional.rms_norm(u, (8,), gain, eps=1e-5)
    torch.testing.assert_close(rms_norm(u, gain), expected)


def test_layer_norm_lands_on_the_sphere_of_the_mean_free_hyperplane() -> None:
    v = layer_norm(draw(2, 5, 8), eps=0.0)
    torch.testing.assert_close(v.square().sum(-1), torch.full((2, 5), 8.0, dtype=torch.float64))
    torch.testing.assert_close(v.mean(-1), torch.zeros(2, 5, dtype=torch.float64))


@pytest.mark.parametrize("norm", [layer_norm, rms_norm])
def test_a_projection_applied_twice_is_applied_once(norm) -> None:  # type: ignore[no-untyped-def]
    v = norm(draw(2, 5, 8), eps=0.0)
    torch.testing.assert_close(norm(v, eps=0.0), v)


def test_removing_the_mean_is_orthogonal() -> None:
    u = draw(2, 5, 8)
    v = remove_mean(u)
    torch.testing.assert_close((v * (u - v)).sum(-1), torch.zeros(2, 5, dtype=torch.float64))


def test_the_sphere_point_is_the_nearest_one() -> None:
    u = draw(1, 1, 6)
    others = project_to_sphere(draw(500, 1, 6), radius=2.0)
    nearest = (project_to_sphere(u, radius=2.0) - u).norm()
    assert nearest <= (others - u).norm(dim=-1).min()


@given(exponent=st.integers(-100, 100))
def test_layer_norm_bounds_a_field_of_any_size(exponent: int) -> None:
    u = draw(1, 4, 8) * 10.0**exponent
    assert layer_norm(u).norm(dim=-1).max() <= 8**0.5 * (1 + 1e-12)


def test_refuses_a_negative_eps() -> None:
    with pytest.raises(ValueError, match=r"`eps` must lie in \[0, inf\], got -1"):
        project_to_sphere(draw(1, 2, 3), eps=-1.0)
