"""Each position against the block written out by hand, with diffusion as a dense matrix."""

import pytest
import torch

from depthpde.layers.registry import LayerConfig, LayerKind
from depthpde.models.block import Block
from depthpde.models.initialisation import initialise
from depthpde.models.placement import Placement
from depthpde.models.position import OPTIONS, ROUTES, Position

IN_BLOCK = [position for position in Position if position is not Position.AFTER_EMBEDDING]
CASES = [
    (position, route, option)
    for position in IN_BLOCK
    for route in ROUTES[position]
    for option in OPTIONS.get(position, (None,))
]


def build(config, seed=0):
    block = Block(config, 0).double()
    initialise(block, config, torch.Generator().manual_seed(seed))
    return block


@pytest.fixture
def field():
    generator = torch.Generator().manual_seed(1)
    return torch.randn(2, 6, 8, generator=generator, dtype=torch.float64)


def smoothing(sites, ratio=1 / 8):
    """Return u → (I + rL) u along the sites, as a dense matrix."""
    path = torch.zeros(sites, sites, dtype=torch.float64)
    for i in range(sites - 1):
        path[i, i + 1] = path[i + 1, i] = ratio
    step = torch.eye(sites, dtype=torch.float64) + path - torch.diag(path.sum(dim=1))
    return lambda u: step @ u


def written_out(block, u, here):
    """Run a block by hand; `here(name)` is what is placed under that name."""
    post = block.norm == "post"
    attention, heads = block.attention, block.attention.heads
    batch, length, dim = u.shape

    def split(v):
        return v.reshape(batch, length, heads, dim // heads).transpose(1, 2)

    def attend(v):
        q, k, w = (here(name)(getattr(attention, name)(v)) for name in ("query", "key", "value"))
        scores = split(q) @ split(k).mT / (dim // heads) ** 0.5
        weights = here("weights")(torch.softmax(scores, dim=-1).mT).mT
        weights = weights / weights.sum(dim=-1, keepdim=True)
        out = here("heads")(weights @ split(w))
        return attention.out(here("across")(out.transpose(1, 2)).flatten(2))

    def advance(u, term, norm, name):
        if not post:
            u = here("before_norm/stream")(u)
        inner = u if post else norm(here("before_norm/branch")(u))
        u = block.add(u, here(f"{name}/branch")(term(inner)))
        u = here(f"{name}/stream")(u)
        if post:
            u = norm(here("before_norm/stream")(here("before_norm/branch")(u)))
        return u

    u = advance(u, attend, block.attention_norm, "after_attention")
    u = advance(u, block.reaction, block.reaction_norm, "after_ffn")
    return here("between_blocks/stream")(u)


NAMES = {
    "values": {"value"},
    "queries_keys_values": {"query", "key", "value"},
    "queries_keys": {"query", "key"},
    "weights": {"weights"},
    "along_sites": {"heads"},
    "across_heads": {"across"},
}


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize(("position", "route", "option"), CASES)
def test_a_position_acts_exactly_where_it_is_defined(small, field, norm, position, route, option):
    placement = Placement(position=position, route=route, option=option)
    layer = LayerConfig(initial_ratio=1 / 8)
    block = build(small(positions=(placement,), layer=layer, stabilizer={"norm": norm}))
    names = NAMES.get(option, {f"{position}/{route}"})

    def here(name):
        return smoothing(2 if name == "across" else 6) if name in names else lambda u: u

    wanted = written_out(block, field, here)
    torch.testing.assert_close(block(field), wanted, rtol=0, atol=1e-12)
    plain = written_out(block, field, lambda name: lambda u: u)
    assert (wanted - plain).abs().max() > 1e-6


@pytest.mark.parametrize("norm", ["pre", "post", "none"])
@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("kind", ["layer", "rms"])
def test_a_bare_block_is_the_equation_written_out(small, field, norm, residual, kind):
    stabilizer = {"norm": norm, "residual": residual, "kind": kind}
    block = build(small(stabilizer=stabilizer))
    wanted = written_out(block, field, lambda name: lambda u: u)
    torch.testing.assert_close(block(field), wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("position", "route", "option"), CASES)
def test_zero_diffusion_is_the_bare_block(small, field, position, route, option):
    placement = Placement(position=position, route=route, option=option)
    placed = build(small(positions=(placement,), layer=LayerConfig(initial_ratio=0.0)))
    bare = build(small())
    if option == "weights":  # The weights are formed there, so sums have another order.
        torch.testing.assert_close(placed(field), bare(field), rtol=0, atol=1e-12)
    else:
        assert torch.equal(placed(field), bare(field))


@pytest.mark.parametrize("kind", list(LayerKind))
@pytest.mark.parametrize(("position", "route", "option"), CASES)
def test_any_layer_works_at_any_position_and_every_parameter_learns(
    small, field, position, route, option, kind
):
    placement = Placement(position=position, route=route, option=option, layer=kind)
    block = build(small(positions=(placement,)))
    out = block(field, torch.arange(6) < torch.tensor([[6], [4]]))
    assert torch.isfinite(out).all()
    out.square().sum().backward()
    for name, parameter in block.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
        # softmax does not see a constant added to every score, so the key's bias has no slope
        if name != "attention.key.bias":
            assert parameter.grad.abs().max() > 0, name


def test_before_a_post_norm_both_routes_are_the_same(small, field):
    outputs = []
    for route in ("branch", "stream"):
        placement = Placement(position="before_norm", route=route)
        outputs.append(build(small(positions=(placement,), stabilizer={"norm": "post"}))(field))
    assert torch.equal(*outputs)


def test_without_the_residual_branch_and_stream_are_the_same(small, field):
    outputs = []
    for route in ("branch", "stream"):
        placement = Placement(position="after_attention", route=route)
        outputs.append(build(small(positions=(placement,), stabilizer={"residual": False}))(field))
    assert torch.equal(*outputs)


@pytest.mark.parametrize("option", OPTIONS[Position.IN_HEADS])
def test_every_head_has_a_ratio_of_its_own_along_the_sites(small, option):
    placement = Placement(position="in_heads", option=option)
    block = build(small(positions=(placement,)))
    theta = block.placed.layers["in_heads"].layer.free.theta
    assert theta.shape == ((2,) if option == "along_sites" else (4,))


@pytest.mark.parametrize(("position", "route", "option"), CASES)
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_padding_never_leaks_into_real_tokens(small, field, position, route, option, norm):
    placement = Placement(position=position, route=route, option=option)
    block = build(small(positions=(placement,), stabilizer={"norm": norm}))
    mask = torch.arange(6) < torch.tensor([[6], [3]])
    noise = torch.where(mask[..., None], field, 100.0 * field.flip(0))
    assert torch.equal(block(field, mask)[mask], block(noise, mask)[mask])
    alone = block(field[1:, :3])
    torch.testing.assert_close(block(field, mask)[1:, :3], alone, rtol=0, atol=1e-12)


def test_a_block_compiles_whole(small):
    block = Block(small(positions=("before_norm", "in_heads", "after_ffn")), 0)
    u, mask = torch.randn(2, 6, 8), torch.arange(6) < torch.tensor([[6], [4]])
    compiled = torch.compile(block, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(u, mask), block(u, mask), rtol=0, atol=1e-5)
