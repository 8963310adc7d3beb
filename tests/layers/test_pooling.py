import pytest
import torch

from depthpde.layers.pooling import Pooling, pool


def test_each_pooling_is_its_formula():
    u = torch.randn(2, 5, 3, dtype=torch.float64)
    assert torch.equal(pool(u, "mean"), u.mean(dim=1))
    assert torch.equal(pool(u, "max"), u.amax(dim=1))
    assert torch.equal(pool(u, "cls"), u[:, 0])


@pytest.mark.parametrize("pooling", [Pooling.MEAN, Pooling.MAX])
def test_padding_has_no_say_even_if_it_is_not_a_number(pooling):
    u = torch.randn(2, 5, 3, dtype=torch.float64)
    mask = torch.arange(5) < torch.tensor([[5], [2]])
    wanted = torch.stack((pool(u[:1], pooling)[0], pool(u[1:, :2], pooling)[0]))
    padded = torch.where(mask[..., None], u, torch.nan)
    torch.testing.assert_close(pool(padded, pooling, mask), wanted, rtol=0, atol=1e-15)


@pytest.mark.parametrize("pooling", [Pooling.MEAN, Pooling.MAX])
def test_nothing_but_padding_gives_zeros_with_finite_gradients(pooling):
    u = torch.randn(1, 4, 3, requires_grad=True)
    out = pool(u, pooling, torch.zeros(1, 4, dtype=torch.bool))
    out.sum().backward()
    assert torch.equal(out, torch.zeros(1, 3))
    assert torch.equal(u.grad, torch.zeros(1, 4, 3))


def test_refuses_what_it_does_not_know():
    with pytest.raises(ValueError, match=r"`pooling`.*got 'sum'"):
        pool(torch.zeros(1, 2, 3), "sum")
    with pytest.raises(ValueError, match=r"`valid_mask` must be boolean"):
        pool(torch.zeros(1, 2, 3), "mean", torch.ones(1, 2))
