import pytest
import torch
from torch import nn

from depthpde.layers.interaction import Attention
from depthpde.measures.lyapunov import Linearised, jacobian_norms, lyapunov_spectrum
from depthpde.models.block import Block
from depthpde.models.config import ModelConfig
from depthpde.seeds import generator


def draw(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=generator(0, "lyapunov"), dtype=torch.float64)


def blocks(count: int = 3, **settings) -> list[Block]:
    config = ModelConfig(dim=4, heads=2, hidden=8, blocks=count, vocabulary=3, length=5, **settings)
    made = [Block(config, index).double() for index in range(count)]
    for index, block in enumerate(made):
        for name, each in block.named_parameters():
            if each.ndim > 1:
                numbers = torch.randn(each.shape, generator=generator(index, name))
                each.data.copy_(0.5 * numbers)
            elif name.endswith("bias"):  # drawn from torch's own stream, which others move
                each.data.zero_()
    return made


def dense(map_, u: torch.Tensor) -> torch.Tensor:
    """Take the Jacobian of one example as a matrix, by torch's own means."""
    jacobian = torch.autograd.functional.jacobian(lambda v: map_(v[None])[0], u)
    return jacobian.reshape(u.numel(), u.numel())


def product(maps, u: torch.Tensor) -> torch.Tensor:
    total = torch.eye(u.numel(), dtype=u.dtype)
    for map_ in maps:
        total = dense(map_, u) @ total
        u = map_(u[None])[0].detach()
    return total


def test_exponents_are_the_singular_values_of_the_whole_product():
    maps, u0 = blocks(), draw(2, 5, 4)
    found = lyapunov_spectrum(maps, u0, exponents=4, rounds=30)
    for index in range(2):
        values = torch.linalg.svdvals(product(maps, u0[index]))[:4]
        torch.testing.assert_close(found.exponents[index], values.log() / 3, rtol=0, atol=1e-3)
    assert found.residual < 1e-3
    torch.testing.assert_close(found.growth.mean(dim=0), found.exponents)
    assert torch.equal(found.largest, found.exponents[:, 0])


def test_exponents_of_a_linear_map_are_the_logarithms_of_its_stretchings():
    stretch = torch.tensor([2.0, 1.0, 0.5], dtype=torch.float64)
    found = lyapunov_spectrum([lambda u: u * stretch] * 6, draw(1, 1, 3), exponents=3, rounds=20)
    wanted = torch.tensor([[2.0, 1.0, 0.5]], dtype=torch.float64).log()
    torch.testing.assert_close(found.exponents, wanted, rtol=0, atol=1e-6)


def test_norms_are_those_of_the_dense_jacobians():
    maps, u0 = blocks(2), draw(2, 5, 4)
    found = jacobian_norms(maps, u0, iterations=60)
    u = u0
    for layer, map_ in enumerate(maps):
        wanted = torch.stack([torch.linalg.matrix_norm(dense(map_, each), 2) for each in u])
        torch.testing.assert_close(found.norms[layer], wanted, rtol=1e-4, atol=0)
        u = map_(u).detach()
    assert found.residual < 1e-4


def test_a_jacobian_meets_finite_differences_also_behind_the_fused_diffusion():
    config = {"positions": ("after_ffn", "between_blocks"), "layer": "diffusion"}
    (block,) = blocks(1, **config)
    u, v = draw(2, 5, 4), draw(3, 5, 4)[:2]
    there = Linearised(block, u)
    with torch.no_grad():
        wanted = (block(u + 1e-6 * v) - block(u - 1e-6 * v)) / 2e-6
    torch.testing.assert_close(there.forth(v), wanted, rtol=1e-6, atol=1e-8)
    w = draw(4, 5, 4)[2:]
    torch.testing.assert_close((there.back(w) * v).sum(), (there.forth(v) * w).sum())


def test_fused_attention_is_measured_without_being_asked_for():
    attention = Attention(4, 2, dtype=torch.float64)
    for name, each in attention.named_parameters():
        each.data.copy_(torch.randn(each.shape, generator=generator(0, name)))
    u, v = draw(1, 6, 4), draw(2, 6, 4)[1:]
    with torch.no_grad():
        wanted = (attention(u + 1e-6 * v) - attention(u - 1e-6 * v)) / 2e-6
    torch.testing.assert_close(Linearised(attention, u).forth(v), wanted, rtol=1e-6, atol=1e-8)


def test_padding_has_no_exponent():
    maps, u0 = blocks(2), draw(1, 5, 4)
    mask = torch.tensor([[True, True, True, False, False]])
    masked = [lambda u, b=block: b(u, mask) for block in maps]
    found = lyapunov_spectrum(masked, u0, exponents=4, rounds=20, valid_mask=mask)
    alone = lyapunov_spectrum(maps, u0[:, :3], exponents=4, rounds=20)
    torch.testing.assert_close(found.exponents, alone.exponents, rtol=0, atol=1e-3)
    norms = jacobian_norms(masked, u0, valid_mask=mask, iterations=60).norms
    torch.testing.assert_close(
        norms, jacobian_norms(maps, u0[:, :3], iterations=60).norms, rtol=1e-3, atol=0
    )


def test_a_block_without_residual_contracts_where_one_with_it_does_not():
    u0 = draw(2, 5, 4)

    def bottom(residual: bool) -> float:
        maps = blocks(4, stabilizer={"residual": residual, "norm": "pre"})
        return float(lyapunov_spectrum(maps, u0, exponents=8).exponents[:, -1].mean())

    assert bottom(False) < bottom(True) - 0.5


def test_weights_and_modes_are_left_alone():
    (block,) = blocks(1)
    block.train()
    lyapunov_spectrum([block], draw(1, 5, 4), exponents=2)
    assert all(each.grad is None for each in block.parameters())
    assert block.training


def test_refuses_more_exponents_than_numbers():
    with pytest.raises(ValueError, match=r"`exponents`.*most 6,.*the short"):
        lyapunov_spectrum([nn.Identity()], draw(1, 2, 3), exponents=7)


def test_refuses_no_blocks():
    with pytest.raises(ValueError, match=r"`maps`.*got none"):
        jacobian_norms([], draw(1, 2, 3))


def test_refuses_a_map_that_changes_the_shape():
    with pytest.raises(ValueError, match=r"`maps`.*they take"):
        jacobian_norms([lambda u: u[:, :1]], draw(1, 2, 3))
