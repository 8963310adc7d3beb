from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from depthpde.operators import reaction
from depthpde.seeds import generator

PAIRS = [
    (reaction.linear, reaction.linear_potential),
    (reaction.fisher_kpp, reaction.fisher_kpp_potential),
    (reaction.allen_cahn, reaction.allen_cahn_potential),
    (reaction.zeldovich, reaction.zeldovich_potential),
]
Map = Callable[[Tensor, float], Tensor]


def draw(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=generator(0, "reaction"), dtype=torch.float64)


@pytest.mark.parametrize(("react", "potential"), PAIRS, ids=lambda each: each.__name__)
def test_reaction_is_minus_the_slope_of_its_potential(react: Map, potential: Map) -> None:
    u = draw(2, 5, 3).requires_grad_()
    (slope,) = torch.autograd.grad(potential(u, 1.7).sum(), u)
    torch.testing.assert_close(react(u, 1.7), -slope)


@pytest.mark.parametrize(
    ("react", "rest"),
    [
        (reaction.fisher_kpp, (0.0, 1.0)),
        (reaction.allen_cahn, (-1.0, 0.0, 1.0)),
        (reaction.zeldovich, (0.0, 1.0)),
    ],
    ids=["fisher_kpp", "allen_cahn", "zeldovich"],
)
def test_nothing_moves_at_a_rest_state(react: Map, rest: tuple[float, ...]) -> None:
    states = torch.tensor(rest, dtype=torch.float64)
    assert torch.equal(react(states, 3.0), torch.zeros_like(states))
    assert (react(states + 0.1, 3.0) != 0).all()


def test_feed_forward_equals_two_linear_modules() -> None:
    first, last = nn.Linear(4, 9).double(), nn.Linear(9, 4).double()
    u = draw(2, 5, 4)
    expected = last(nn.functional.gelu(first(u)))
    got = reaction.feed_forward(u, first.weight, first.bias, last.weight, last.bias)
    torch.testing.assert_close(got, expected)


def test_feed_forward_never_passes_anything_between_sites() -> None:
    first, last = draw(9, 4), draw(4, 9)
    u = draw(1, 5, 4)
    other = u.clone()
    other[:, 2] += 1
    difference = reaction.feed_forward(u, first, None, last, None) - reaction.feed_forward(
        other, first, None, last, None
    )
    moved = difference.abs().sum(-1)[0] > 0
    assert moved.tolist() == [False, False, True, False, False]
