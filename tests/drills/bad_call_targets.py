"""What the bad calls call: public names with arguments that fit, and the reference of each."""

from __future__ import annotations

import random
from typing import Any

import torch
from torch import Tensor, nn

import depthpde as dp
from depthpde import measures
from drills.bad_calls import Argument, Target
from drills.bad_values import (
    BATCH,
    COUNTS,
    DEVICES,
    DIM,
    DTYPES,
    FIELDS,
    FLAGS,
    GRIDS,
    LENGTH,
    MASKS,
    NAMES,
    RATIOS,
    SEGMENTS,
    one_of,
    some_field,
    some_mask,
    tensors,
    values,
)
from drills.references import conv, dense, dense_2d, dense_layer, in_double


def field(*shape: int) -> Any:
    """Draw a field of float32."""
    return lambda chance: torch.randn(*(shape or (BATCH, LENGTH, DIM)))


def choice(*names: Any, bad: Any = NAMES) -> Argument:
    return Argument(one_of(*names), bad)


def count(*numbers: int, always: bool = False) -> Argument:
    return Argument(one_of(*numbers), COUNTS, always=always)


def free(*given: Any) -> Argument:
    return Argument(one_of(*given), anything=True)


def some_segments(chance: random.Random) -> Tensor:
    return torch.tensor([[0, 0, 1, 1, 1, 2]] * BATCH)


FIELD, PLAIN = Argument(some_field, FIELDS, always=True), Argument(field(), FIELDS, always=True)
MASK, SEGMENT = Argument(some_mask, MASKS), Argument(some_segments, SEGMENTS)
STEPS, START = count(1, 2, 3), Argument(one_of(0.05, 0.1), RATIOS)
RATIO = Argument(one_of(0.0, 0.1, 0.25), RATIOS, always=True)
SCHEME = choice("explicit", "backward_euler", "crank_nicolson", "exact", "upwind")
BOUNDARY, FLAG = choice("no_flux", "fixed", "periodic"), Argument(one_of(True, False), FLAGS)
GRID, WIDE = Argument(one_of((2, 3), (3, 2)), GRIDS), count(DIM, always=True)
MADE = {
    "device": Argument(one_of("cpu"), DEVICES, anything=True),
    "dtype": Argument(one_of(None), DTYPES),
}
FORWARD = {"u": FIELD, "valid_mask": MASK, "segments": SEGMENT, "row_length": count(1, 2, 3, 6)}


def operators() -> list[Target]:
    """List the functions of fields."""
    method = choice("auto", "auto", "stencil", "fused", "reference")
    steps = {"steps": STEPS, "scheme": SCHEME, "boundary": BOUNDARY, "method": method}
    taps = tensors(
        "4,0", "4,9", "3", "4,3 int64", "4,3 meta", "4,3 float64", "5,3", "4,3 complex64"
    )
    weight = Argument(field(DIM, 3), taps, always=True)
    bias = Argument(field(DIM), tensors("5", "1", "4,1", "4 int64", "4 meta", "6"))
    before = tensors("2,4,3", "4,2", "2,4,2 int64", "2,4,2 meta")
    rest = {"weight": weight, "bias": bias, "activation": choice(None, "silu")}
    packed = [*SEGMENTS, *tensors("3 float64"), lambda: torch.tensor([3, 1, 9])]
    cu = Argument(lambda chance: torch.tensor([0, 2, LENGTH]), packed)
    along = FORWARD | steps | {"ratio": RATIO, "dilation": count(1, 2, 9)}
    over = steps | {"u": FIELD, "ratio": RATIO, "valid_mask": MASK}
    over |= {"grid": Argument(GRID.good, GRIDS, always=True)}
    conv1d = rest | {"x": Argument(field(BATCH, DIM, LENGTH), FIELDS, always=True)}
    conv1d |= {"seq_idx": SEGMENT, "initial_states": Argument(field(BATCH, DIM, 2), before)}
    conv1d |= {"return_final_states": FLAG, "cu_seqlens": cu}
    update = rest | {"x": Argument(field(BATCH, DIM), FIELDS, always=True)}
    update |= {"conv_state": Argument(field(BATCH, DIM, 2), before, always=True)}
    return [
        Target("diffuse", dp.diffuse, along, dense, 40),
        Target("diffuse_2d", dp.diffuse_2d, over, dense_2d, 20),
        Target("causal_conv1d", dp.causal_conv1d, conv1d, conv, 16),
        Target("causal_conv1d_update", dp.causal_conv1d_update, update, weight=8),
    ]


def layers() -> list[Target]:
    """List the layers called with a field."""
    torch.manual_seed(0)
    built = [
        dp.Diffusion(DIM), dp.Diffusion(DIM, scheme="exact", steps=2), dp.AdaptiveDiffusion(DIM),
        dp.MultiscaleDiffusion(DIM), dp.MultiscaleDiffusion(DIM, gated=True), dp.Blur(DIM),
        dp.DepthwiseConv(DIM, start="blur"), dp.ExponentialAverage(DIM), dp.TokenShift(DIM),
        dp.LearnedStencil(DIM, reach=2),
    ]  # fmt: skip
    called = [Target(f"{type(each).__name__}(u)", each, FORWARD, _judge(each), 6) for each in built]
    alone = {"u": FIELD, "valid_mask": MASK}
    wrapped = nn.DataParallel(built[0])
    return [
        *called,
        Target("DataParallel(Diffusion)(u)", wrapped, FORWARD, _judge(built[0]), 3),
        Target("Attention(u)", dp.Attention(DIM, 2), alone, weight=5),
        Target("FeedForward(u)", dp.FeedForward(DIM, 8), {"u": FIELD}, weight=3),
    ]


def _judge(layer: nn.Module) -> Any:
    return dense_layer(layer) if isinstance(layer, dp.Diffusion) else in_double(layer)


def built_layers() -> list[Target]:
    """List the constructors of layers."""
    common = {"dim": WIDE, "steps": STEPS, "bound": Argument(one_of(0.25, 0.2), RATIOS), **MADE}
    common |= {"initial_ratio": START, "causal": FLAG}
    several = {name: each for name, each in common.items() if name != "steps"}
    scales = Argument(
        one_of("fast slow", [dp.DiffusionScale(steps=2)]),
        values("fast,slow", [], "", [3], [None], {"fast": 1}),
    )
    heads = {"per": choice("feature", "scalar"), "num_heads": count(1, 2)}
    made = {"dim": WIDE, "causal": FLAG, **MADE}
    start = {"start": choice("identity", "blur"), "start_ratio": START}
    takes: dict[Any, dict[str, Argument]] = {
        dp.Diffusion: common | heads | {"scheme": SCHEME, "boundary": BOUNDARY, "dilation": STEPS}
        | {"grid": GRID},
        dp.AdaptiveDiffusion: common,
        dp.MultiscaleDiffusion: several | {"scales": scales, "gated": FLAG, "scheme": SCHEME}
        | {"grid": GRID},
        dp.DiffusionScale: {"steps": STEPS, "dilation": STEPS, "initial_ratio": START},
        dp.Blur: {"dim": WIDE, "ratio": START, "steps": STEPS, "causal": FLAG},
        dp.DepthwiseConv: made | start | {"width": count(3, 5)},
        dp.ExponentialAverage: made | {"initial_memory": START},
        dp.TokenShift: {"dim": WIDE, "initial_ratio": START, **MADE},
        dp.LearnedStencil: made | start | {"reach": count(1, 2), "bound": choice("l1", None)}
        | {"symmetric": FLAG, "grid": GRID},
        dp.Attention: made | {"heads": count(1, 2, always=True), "explicit": FLAG}
        | {"dropout": Argument(one_of(0.0, 0.1), RATIOS), "rotation": free(None)},
        dp.FeedForward: {"dim": WIDE, "hidden": count(8, always=True), **MADE}
        | {"activation": choice("gelu", "relu")},
        dp.Stabilizer: {"norm": choice("pre", "post"), "kind": choice("layer"), "residual": FLAG}
        | {"deepnorm": FLAG},
    }  # fmt: skip
    return [Target(make.__name__, make, each) for make, each in takes.items()]


def measured() -> list[Target]:
    """List the measures of fields and of attention."""
    one, two = {"u": FIELD, "valid_mask": MASK}, {"u": PLAIN, "v": PLAIN, "valid_mask": MASK}
    energy, rank, drift = measures.energy, measures.rank, measures.drift
    singles = (
        energy.dirichlet, energy.smoothness_quotient, energy.field_size, energy.peak,
        energy.prominence, rank.rank_residual, rank.effective_rank, rank.token_cosine,
        rank.cluster_count, measures.spectrum.band_shares,
    )  # fmt: skip
    pairs = (drift.cosine, drift.centred_cosine, drift.linear_cka, drift.displacement)
    square = tensors("2,6,6", "6", "2,2,6,6 int64", "2,2,6,6 meta", "2,2,6,3")
    rows = Argument(lambda c: torch.softmax(torch.randn(2, 2, 6, 6), -1), square, always=True)
    seen = {"weights": rows, "valid_mask": MASK}
    attention = measures.attention
    return [
        *(Target(f"measures.{each.__name__}", each, one, weight=2) for each in singles),
        *(Target(f"measures.{each.__name__}", each, two, weight=2) for each in pairs),
        Target("measures.entropy", attention.entropy, {"weights": rows}, weight=2),
        Target("measures.on_first", attention.on_first, seen, weight=2),
        Target("measures.stochastic", attention.doubly_stochastic_gap, seen, weight=2),
    ]
