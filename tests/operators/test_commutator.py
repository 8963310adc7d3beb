import torch
from torch import Tensor

from depthpde.operators.commutator import commutator, commutator_norm, frozen_commutator
from depthpde.operators.interaction import attention_weights, interact
from depthpde.operators.laplacian import laplacian
from depthpde.seeds import generator


def draw(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=generator(0, "commutator"), dtype=torch.float64)


def smooth(u: Tensor) -> Tensor:
    return u + 0.25 * laplacian(u)


def test_an_operator_commutes_with_its_own_powers() -> None:
    u = draw(2, 9, 3)
    gap = commutator_norm(smooth, lambda v: smooth(smooth(v)), u)
    torch.testing.assert_close(gap, torch.zeros_like(gap), atol=1e-15, rtol=0)


def test_diffusion_and_attention_do_not_commute() -> None:
    u = draw(2, 9, 3)

    def attend(v: Tensor) -> Tensor:
        return interact(v, attention_weights(v, v))

    assert (commutator_norm(smooth, attend, u) > 1e-2).all()


def test_commutator_changes_sign_with_the_order() -> None:
    u = draw(2, 9, 3)
    there, back = commutator(smooth, torch.sin, u), commutator(torch.sin, smooth, u)
    torch.testing.assert_close(there, -back)


def test_frozen_commutator_is_the_commutator_with_a_frozen_matrix() -> None:
    u = draw(2, 9, 3)
    weights = attention_weights(u, u)
    expected = commutator(smooth, lambda v: weights @ v, u)
    torch.testing.assert_close(frozen_commutator(weights, 0.25) @ u, expected)


def test_commutator_norm_is_relative_to_the_field() -> None:
    u = draw(2, 9, 3)
    weights = attention_weights(u, u)

    def attend(v: Tensor) -> Tensor:
        return weights @ v

    torch.testing.assert_close(
        commutator_norm(smooth, attend, 7 * u), commutator_norm(smooth, attend, u)
    )
