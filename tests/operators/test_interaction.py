import pytest
import torch
from torch import Tensor
from torch.nn import functional

from depthpde.operators.interaction import (
    Kernel,
    attention_scores,
    attention_weights,
    interact,
    interaction_energy,
    sinkhorn,
)
from depthpde.seeds import generator


def draw(*shape: int, use: str = "interaction") -> Tensor:
    return torch.randn(*shape, generator=generator(0, use), dtype=torch.float64)


def a_mask() -> Tensor:
    return torch.tensor([[True] * 5 + [False] * 2, [True] * 7])


def test_softmax_interaction_equals_torch_attention() -> None:
    q, k, v = draw(3, 2, 7, 4)
    expected = functional.scaled_dot_product_attention(q, k, v)
    torch.testing.assert_close(interact(v, attention_weights(q, k)), expected)


def test_causal_interaction_equals_torch_causal_attention_with_heads() -> None:
    q, k, v = draw(3, 2, 3, 7, 4)
    expected = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    torch.testing.assert_close(interact(v, attention_weights(q, k, causal=True)), expected)


@pytest.mark.parametrize("kernel", list(Kernel))
def test_padding_neither_gives_nor_takes(kernel: Kernel) -> None:
    q, k = draw(2, 2, 7, 4)
    mask = a_mask()
    weights = attention_weights(q, k, kernel=kernel, valid_mask=mask, iterations=200)
    both = mask[:, :, None] & mask[:, None, :]
    assert torch.equal(weights[~both], torch.zeros_like(weights[~both]))
    short = attention_weights(q[:1, :5], k[:1, :5], kernel=kernel, iterations=200)
    torch.testing.assert_close(weights[:1, :5, :5], short)


@pytest.mark.parametrize("kernel", list(Kernel))
def test_mask_holds_for_every_head(kernel: Kernel) -> None:
    q, k = draw(2, 2, 3, 7, 4)
    weights = attention_weights(q, k, kernel=kernel, valid_mask=a_mask())
    assert weights.shape == (2, 3, 7, 7)
    assert torch.equal(weights[0, :, :, 5:], torch.zeros(3, 7, 2, dtype=torch.float64))


@pytest.mark.parametrize("kernel", list(Kernel))
def test_a_sequence_of_nothing_but_padding_gives_zero_not_nan(kernel: Kernel) -> None:
    q, k = draw(2, 1, 4, 3)
    nothing = torch.zeros(1, 4, dtype=torch.bool)
    weights = attention_weights(q, k, kernel=kernel, valid_mask=nothing)
    assert torch.equal(weights, torch.zeros_like(weights))


def test_sinkhorn_is_doubly_stochastic_and_softmax_is_not() -> None:
    q, k = draw(2, 2, 7, 4)
    ones = torch.ones(2, 7, dtype=torch.float64)
    balanced = attention_weights(q, k, kernel=Kernel.SINKHORN, iterations=300)
    torch.testing.assert_close(balanced.sum(-1), ones)
    torch.testing.assert_close(balanced.sum(-2), ones)
    assert (attention_weights(q, k).sum(-2) - 1).abs().max() > 0.1


def test_sinkhorn_interaction_conserves_the_mean() -> None:
    u = draw(2, 7, 4)
    weights = attention_weights(u, u, kernel=Kernel.SINKHORN, iterations=300)
    torch.testing.assert_close(interact(u, weights).mean(1), u.mean(1))


def test_sinkhorn_of_symmetric_scores_is_symmetric() -> None:
    u = draw(2, 7, 4)
    weights = attention_weights(u, u, kernel=Kernel.SINKHORN, iterations=300)
    torch.testing.assert_close(weights, weights.mT)


def test_sinkhorn_survives_scores_that_overflow_exp() -> None:
    weights = sinkhorn(1e4 * draw(1, 6, 6), iterations=50)
    assert torch.isfinite(weights).all()
    torch.testing.assert_close(weights.sum(-1), torch.ones(1, 6, dtype=torch.float64))


def test_sinkhorn_interaction_is_minus_the_gradient_of_its_energy() -> None:
    u = draw(1, 6, 3).requires_grad_()
    (slope,) = torch.autograd.grad(interaction_energy(u, gain=0.7).sum(), u)
    weights = sinkhorn(attention_scores(u, u, gain=0.7), iterations=200)
    torch.testing.assert_close(interact(u, weights), -slope, rtol=1e-9, atol=1e-9)


def test_softmax_interaction_is_not_minus_that_gradient() -> None:
    u = draw(1, 6, 3).requires_grad_()
    (slope,) = torch.autograd.grad(interaction_energy(u, gain=0.7).sum(), u)
    assert (interact(u, attention_weights(u, u, gain=0.7)) + slope).abs().max() > 0.05


def test_gain_is_one_over_root_dim_unless_given() -> None:
    u = draw(1, 5, 4)
    assert torch.equal(attention_scores(u, u), attention_scores(u, u, gain=0.5))


def test_refuses_a_causal_sinkhorn_kernel() -> None:
    u = draw(1, 5, 4)
    with pytest.raises(ValueError, match=r"`kernel` must be softmax.*is the identity"):
        attention_weights(u, u, kernel=Kernel.SINKHORN, causal=True)


def test_refuses_an_unknown_kernel_and_names_the_nearest() -> None:
    u = draw(1, 5, 4)
    with pytest.raises(ValueError, match=r"`kernel` must be one of softmax, sinkhorn.*'sinkhorn'"):
        attention_weights(u, u, kernel="sinkorn")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "mask", [torch.ones(2, 5), torch.ones(2, 4, dtype=torch.bool)], ids=["float", "short"]
)
def test_refuses_a_mask_of_wrong_kind_or_shape(mask: Tensor) -> None:
    u = draw(2, 5, 4)
    with pytest.raises(ValueError, match=r"`valid_mask` must be boolean \[batch, length\]"):
        attention_weights(u, u, valid_mask=mask)


def test_refuses_sinkhorn_without_iterations() -> None:
    with pytest.raises(ValueError, match="`iterations` must be at least 1"):
        sinkhorn(draw(1, 3, 3), iterations=0)


@pytest.mark.parametrize("kernel", list(Kernel))
def test_gradients_are_finite_beside_padding(kernel: Kernel) -> None:
    q = draw(2, 7, 4).requires_grad_()
    mask = a_mask()
    mask[1] = False
    attention_weights(q, q, kernel=kernel, valid_mask=mask).square().sum().backward()
    assert q.grad is not None
    assert torch.isfinite(q.grad).all()
    assert torch.equal(q.grad[~mask], torch.zeros_like(q.grad[~mask]))
