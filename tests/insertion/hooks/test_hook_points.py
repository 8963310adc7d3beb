"""Each position and route against a block written out by hand, D included."""

import pytest
import torch
from torch import nn

from depthpde.insertion.family import Family, NormOrder, into, out_of
from depthpde.insertion.hooks.hook_points import available
from depthpde.insertion.insert import insert
from depthpde.layers.diffusion import Diffusion
from depthpde.models.position import ROUTES, Position, Route

DIM = 6
CASES = [(position, route) for position, routes in ROUTES.items() for route in routes]


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.to_q, self.to_v, self.to_out = (nn.Linear(DIM, DIM) for _ in range(3))

    def forward(self, u, inside=lambda position, u: u):
        weights = torch.softmax(self.to_q(u) @ u.transpose(1, 2), dim=-1)
        heads = weights @ inside(Position.IN_ATTENTION, self.to_v(u))
        return self.to_out(inside(Position.IN_HEADS, heads))


class Block(nn.Module):
    def __init__(self, *, pre: bool) -> None:
        super().__init__()
        self.pre = pre
        self.attention, self.ffn = Attention(), nn.Sequential(nn.Linear(DIM, DIM), nn.Tanh())
        self.first, self.second = nn.LayerNorm(DIM), nn.LayerNorm(DIM)

    def forward(self, u):
        if self.pre:
            u = u + self.attention(self.first(u))
            return u + self.ffn(self.second(u))
        u = self.first(u + self.attention(u))
        return self.second(u + self.ffn(u))

    def by_hand(self, u, placed):
        """The same block with `placed(position, route, u)` wherever something may act."""
        stream = lambda position, u: placed(position, Route.STREAM, u)  # noqa: E731
        branch = lambda position, u: placed(position, Route.BRANCH, u)  # noqa: E731
        if self.pre:
            u = stream(Position.BEFORE_NORM, u)
            read = self.first(branch(Position.BEFORE_NORM, u))
            u = u + branch(Position.AFTER_ATTENTION, self.attention(read, branch))
            u = stream(Position.BEFORE_NORM, stream(Position.AFTER_ATTENTION, u))
            read = self.second(branch(Position.BEFORE_NORM, u))
            u = u + branch(Position.AFTER_FFN, self.ffn(read))
            return stream(Position.BETWEEN_BLOCKS, stream(Position.AFTER_FFN, u))
        u = u + branch(Position.AFTER_ATTENTION, self.attention(u, branch))
        u = stream(Position.BEFORE_NORM, stream(Position.AFTER_ATTENTION, u))
        u = self.first(branch(Position.BEFORE_NORM, u))
        u = u + branch(Position.AFTER_FFN, self.ffn(u))
        u = stream(Position.BEFORE_NORM, stream(Position.AFTER_FFN, u))
        return stream(Position.BETWEEN_BLOCKS, self.second(branch(Position.BEFORE_NORM, u)))


class Model(nn.Module):
    def __init__(self, *, pre: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.blocks = nn.ModuleList([Block(pre=pre), Block(pre=pre)]).double()

    def forward(self, u):
        for block in self.blocks:
            u = block(u)
        return u

    def by_hand(self, u, placed):
        u = placed(Position.AFTER_EMBEDDING, Route.STREAM, u)
        for block in self.blocks:
            u = block.by_hand(u, placed)
        return u


def family(*, pre: bool) -> Family:
    return Family(
        name="written out",
        norm=NormOrder.PRE if pre else NormOrder.POST,
        norms=("first", "second"),
        attention=out_of("attention"),
        ffn=out_of("ffn"),
        width="attention.to_q",
        values=out_of("attention.to_v"),
        heads=into("attention.to_out"),
    )


def plain(pre: bool) -> Model:
    """The same model with nothing inserted."""
    return Model(pre=pre)


def smooth(dim, causal):
    return Diffusion(dim, per="scalar", initial_ratio=0.2, causal=causal, dtype=torch.float64)


def where(*wanted):
    layer = smooth(DIM, causal=False)
    return lambda position, route, u: layer(u) if (position, route) in wanted else u


@pytest.fixture
def u(generator):
    return torch.randn(2, 5, DIM, dtype=torch.float64, generator=generator)


@pytest.mark.parametrize("pre", [True, False], ids=["pre-norm", "post-norm"])
@pytest.mark.parametrize(("position", "route"), CASES)
def test_position_and_route_act_where_they_are_defined(position, route, pre, u):
    model = Model(pre=pre)
    inserted = insert(model, position, route=route, layer=smooth, family=family(pre=pre))
    torch.testing.assert_close(model(u), plain(pre).by_hand(u, where((position, route))))
    assert not torch.allclose(model(u), plain(pre).by_hand(u, where()))
    inserted.remove()
    assert torch.equal(model(u), plain(pre)(u))


@pytest.mark.parametrize("pre", [True, False], ids=["pre-norm", "post-norm"])
def test_all_positions_at_once_act_in_order_whichever_came_first(pre, u):
    model = Model(pre=pre)
    for position, route in reversed(CASES):
        insert(model, position, route=route, layer=smooth, family=family(pre=pre))
    torch.testing.assert_close(model(u), plain(pre).by_hand(u, where(*CASES)))


@pytest.mark.parametrize("gone", CASES)
def test_taking_one_out_leaves_the_others_in(gone, u):
    model = Model(pre=True)
    inserted = {
        case: insert(model, case[0], route=case[1], layer=smooth, family=family(pre=True))
        for case in CASES
    }
    inserted[gone].remove()
    left = [case for case in CASES if case != gone]
    torch.testing.assert_close(model(u), plain(True).by_hand(u, where(*left)))


def test_stream_gradients_are_those_of_the_block_written_out(u):
    model = Model(pre=True)
    insert(model, "after_attention", route="stream", layer=smooth, family=family(pre=True))
    v = u.clone().requires_grad_()
    (mine,) = torch.autograd.grad(model(v).square().sum(), v)
    placed = where((Position.AFTER_ATTENTION, Route.STREAM))
    (reference,) = torch.autograd.grad(plain(True).by_hand(v, placed).square().sum(), v)
    torch.testing.assert_close(mine, reference)


def test_default_route_is_the_positions_own():
    for position, routes in available(family(pre=True)).items():
        inserted = insert(Model(pre=True), position, family=family(pre=True))
        assert inserted.route is routes[0] is ROUTES[position][0]


def test_refuses_a_route_that_the_position_has_not():
    with pytest.raises(ValueError, match=r"`route` 'stream'.*at 'in_attention'; it ha"):
        insert(Model(pre=True), "in_attention", route="stream", family=family(pre=True))


def test_refuses_a_position_that_the_family_has_not_and_lists_those_it_has():
    layer = nn.TransformerEncoderLayer(DIM, 2, batch_first=True)
    with pytest.raises(ValueError, match=r"inside one function call.*it has after_embedding, bef"):
        insert(layer, "in_heads")
