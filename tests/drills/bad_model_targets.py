"""What the bad calls call beside operators and layers: configs, models, insertion, simulation."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

import depthpde as dp
from drills.bad_call_targets import (
    BOUNDARY,
    FLAG,
    GRID,
    MASK,
    PLAIN,
    SCHEME,
    START,
    STEPS,
    built_layers,
    choice,
    count,
    field,
    free,
    layers,
    measured,
    operators,
)
from drills.bad_calls import Argument, Target
from drills.bad_values import (
    BATCH,
    COUNTS,
    DIM,
    FIELDS,
    FLAGS,
    LENGTH,
    NAMES,
    RATIOS,
    one_of,
    tensors,
    values,
)

NUMBER, SHARE = count(4, 8), Argument(one_of(0.0, 0.1), RATIOS)
SMALL = {"dim": 8, "blocks": 1, "heads": 2}


def models() -> list[Target]:
    """List models called with their inputs."""
    bad = tensors(
        "2,6", "6 int64", "2,0 int64", "2,99 int64", "2,6 meta", "2,6 int32", "2,6 bool",
        "2,6,1 int64", "2,6 uint8",
    )  # fmt: skip
    outside = [lambda: torch.full((2, 6), 99), lambda: torch.full((2, 6), -1)]
    tokens = Argument(lambda c: torch.randint(0, 10, (BATCH, LENGTH)), [*bad, *outside], True)
    images = Argument(field(BATCH, 1, 8, 8), [*FIELDS, *tensors("2,64", "2,8,8", "2,3,8,8")], True)
    shape: dict[str, Any] = {**SMALL, "vocabulary": 10, "length": LENGTH}
    placed = dp.ModelConfig(**shape, classes=3, positions=("after_embedding",))
    patches = dp.ModelConfig(**SMALL, input="patch", grid=(2, 2), patch=4, classes=3)
    language = dp.LanguageModel(dp.ModelConfig(**shape, causal=True)).eval()
    whole = Argument(one_of(placed), [lambda: {"dim": 8}, lambda: dp.ModelConfig], always=True)
    first = {"inputs": tokens, "valid_mask": MASK, "second_inputs": Argument(one_of(None))}
    size = {"config": whole, "batch": NUMBER, "length": NUMBER, "head": choice("classifier")}
    task = Argument(one_of(None, dp.tasks["listops-mini"]))
    parts = {"config": whole, "task": task, "generator": Argument(lambda c: dp.generator(0))}
    return [
        Target("Classifier(tokens)", dp.Classifier(placed).eval(), first, weight=8),
        Target("LanguageModel(tokens)", language, {"tokens": tokens, "valid_mask": MASK}, weight=8),
        Target("VisionTransformer(images)", dp.VisionTransformer(patches), {"inputs": images}),
        Target("cost", dp.cost, size, weight=3),
        Target("Classifier", dp.Classifier, parts, weight=2),
    ]


def configs() -> list[Target]:
    """List settings."""
    places = values("after_embedding", ("after",), (3,), [None], ({"position": "after_ffn"},))
    kinds = [*values({"kind": "x"}, {"kind": "blur", "per": 3}), *NAMES]
    model = {
        "dim": NUMBER, "blocks": NUMBER, "heads": count(2), "hidden": NUMBER, "causal": FLAG,
        "activation": choice("gelu"), "dropout": SHARE, "attention_dropout": SHARE,
        "stabilizer": choice(dp.Stabilizer(), bad=values({"norm": 3}, {"x": 1})),
        "input": choice("token"), "encoding": choice("learned"), "pooling": choice("mean"),
        "positions": Argument(one_of(("after_embedding",), ()), places),
        "layer": choice("diffusion", bad=kinds), "route": choice(None), "grid": GRID,
        "patch": NUMBER, "vocabulary": NUMBER, "length": NUMBER, "classes": NUMBER,
        "documents": count(1),
    }  # fmt: skip
    layer = {
        "kind": choice("diffusion"), "initial_ratio": START, "bound": START, "steps": STEPS,
        "scheme": SCHEME, "dilation": STEPS, "boundary": BOUNDARY, "per": choice("feature"),
        "gated": FLAG,
    }  # fmt: skip
    training = {
        "updates": NUMBER, "batch_size": NUMBER, "learning_rate": Argument(one_of(1e-3), RATIOS),
        "schedule": choice("cosine"), "warmup": NUMBER, "clip": Argument(one_of(1.0), RATIOS),
        "compile": FLAG, "seed": NUMBER, "keep": choice("best"),
    }  # fmt: skip
    place = {"position": Argument(one_of("after_ffn"), NAMES, always=True), "route": choice(None)}
    return [
        Target("ModelConfig", dp.ModelConfig, model, weight=10),
        Target("LayerConfig", dp.LayerConfig, layer, weight=5),
        Target("TrainingConfig", dp.TrainingConfig, training, weight=5),
        Target("Placement", dp.Placement, place | {"layer": choice("diffusion")}, weight=3),
        Target("generator", dp.generator, {"seed": count(1, 2, always=True)}, weight=2),
    ]


def encoder() -> nn.Module:
    """Build a small encoder of torch's own."""
    block = nn.TransformerEncoderLayer(DIM, 2, 8, batch_first=True)
    return nn.TransformerEncoder(block, 2, enable_nested_tensor=False).eval()


def insertions() -> list[Target]:
    """List what takes somebody's model."""
    strange = [
        lambda: nn.DataParallel(encoder()), lambda: nn.Linear(2, 2), nn.Sequential,
        lambda: encoder().to("meta"), lambda: encoder, lambda: nn.ModuleList([encoder()]),
        lambda: encoder().half(), lambda: nn.LSTM(3, 3), lambda: nn.functional.relu,
    ]  # fmt: skip
    model = Argument(lambda c: encoder(), strange, always=True, anything=True)
    named = [
        lambda: {"src": torch.randn(BATCH, LENGTH, DIM)},
        *values({"x": 1}, {}, (), {"src": 1}),
    ]
    batch = Argument(field(), [*FIELDS, *named], always=True, anything=True)
    off = Argument(one_of(False), FLAGS, always=True)
    where = [*NAMES, *values("after_embedding", "everywhere")]
    blocks = values([5], 0, "0", [], [True], [-1], [0.0], [None])
    put = {
        "model": model, "position": Argument(one_of("after_ffn", "after_attention"), where, True),
        "layer": Argument(one_of("diffusion"), NAMES, anything=True), "route": choice("stream"),
        "blocks": Argument(one_of([0], [0, 1]), blocks), "causal": FLAG, "initial_ratio": START,
        "family": Argument(one_of(None)), "stack": choice("layers"), "layout": choice("blc"),
        "at": Argument(one_of(None), values("layers.0", "layers.9", "", 3)),
    }  # fmt: skip
    groups = Argument(one_of(("drift",)), values("drift", ("x",), 3))
    asked = Argument(one_of(("future",)), values("future", ("x",), 3, ()), always=True)
    look = {"model": model, "batch": batch, "groups": groups}
    look |= {"baseline": off, "causality": off, "check": off}
    changed = {"model": model, "inputs": batch, "length_axis": count(1), "seed": count(0)}
    changed |= {"vocabulary": count(9), "tolerance": Argument(one_of(1e-5), RATIOS)}
    changed |= {"trials": Argument(one_of(1), COUNTS, always=True)}
    audited = {"model": model, "batch": batch, "causal": FLAG, "questions": asked}
    return [
        Target("insert", dp.insert, put, weight=6),
        Target("probe", dp.probe, look, weight=3),
        Target("check_causality", dp.check_causality, changed, weight=3),
        Target("audit", dp.audit, audited | {"segments": choice(None)}, weight=2),
    ]


def simulations() -> list[Target]:
    """List equations and their integration."""
    odd_times = [
        *values([], [0.0], [1.0, 0.0], [0.0, float("nan")], [0.0, float("inf")], ["a", "b"], 3),
        *values([0.0, 0.0], [0, 1]), *tensors("2,2", "3 meta", "2 int64"),
    ]  # fmt: skip
    times = Argument(one_of([0.0, 0.1], torch.linspace(0, 0.2, 3)), odd_times, always=True)
    near, bound = Argument(one_of(1e-3), RATIOS), Argument(one_of(1.0), RATIOS, always=True)
    high = Argument(one_of(1e6), RATIOS)
    heat = [*values(dp.systems, dp.Equation, "heat")]
    whole = {
        "equation": Argument(one_of(dp.Equation(diffusion=0.1)), heat, always=True), "u0": PLAIN,
        "times": times, "method": choice("auto", "rk4", "lie"), "rtol": near, "atol": near,
        "substeps": STEPS, "valid_mask": MASK, "max_steps": count(1000), "strict": FLAG,
        "events": Argument(lambda c: [dp.merged()], [dp.merged, *values([3], ["merged"])]),
        "dense": FLAG, "gradient": choice("steps"),
    }  # fmt: skip
    rates: list[Any] = [lambda: lambda u: u, lambda: lambda u, t: None, lambda: lambda u, t: "x"]
    decay = Argument(one_of(lambda u, t: -u), rates, always=True, anything=True)
    path = {"dynamics": decay, "u0": PLAIN, "times": times, "method": choice("rk4", "heun")}
    equation = {
        "diffusion": Argument(one_of(0.1), RATIOS), "interaction": free(None),
        "reaction": free(None), "fidelity": Argument(one_of(0.1), RATIOS), "source": free(None),
        "stabilizer": Argument(one_of(dp.Stabilizer())), "boundary": BOUNDARY, "causal": FLAG,
        "prefix": count(0), "blocks": count(2), "grid": GRID,
    }  # fmt: skip
    return [
        Target("simulate", dp.simulate, whole, weight=6),
        Target("integrate", dp.integrate, path | {"substeps": STEPS, "ceiling": high}, weight=5),
        Target("Equation", dp.Equation, equation),
        Target("merged", dp.merged, {"clusters": STEPS, "apart": near, "terminal": FLAG}, weight=1),
        Target("norm_above", dp.norm_above, {"bound": bound, "terminal": FLAG}, weight=1),
        Target("energy_below", dp.energy_below, {"bound": bound, "terminal": FLAG}, weight=1),
    ]


def every_target() -> list[Target]:
    """List all of them."""
    return [
        *operators(), *layers(), *built_layers(), *measured(), *models(), *configs(),
        *insertions(), *simulations(),
    ]  # fmt: skip
