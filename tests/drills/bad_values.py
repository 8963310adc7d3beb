"""Values that do not fit, by the kind of argument that they are given for."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

DIM, LENGTH, BATCH = 4, 6, 2
Draw = Callable[[random.Random], Any]
Make = Callable[[], Any]


def one_of(*values: Any) -> Draw:
    """Draw one of the values."""
    return lambda chance: chance.choice(values)


def values(*given: Any) -> list[Make]:
    """Make these very values."""
    return [lambda value=value: value for value in given]  # type: ignore[misc]


def tensors(*specs: str) -> list[Make]:
    """Make a tensor for each text: its shape, then its dtype or what is done to it.

    >>> [make().shape for make in tensors("2,6,4", "2,6 bool")]
    [torch.Size([2, 6, 4]), torch.Size([2, 6])]
    """
    return [lambda spec=spec: _tensor(spec) for spec in specs]  # type: ignore[misc]


def _tensor(spec: str) -> Any:
    shape, _, kind = spec.partition(" ")
    sizes = [int(each) for each in shape.split(",") if each]
    made: Tensor = torch.rand(sizes) / 2
    if kind == "numpy":
        return made.numpy()
    if kind == "list":
        return made.tolist()
    if kind == "nan":
        return made * math.nan
    if kind == "meta":
        return made.to("meta")
    if kind == "bool meta":
        return (made >= 0).to("meta")
    if kind == "sparse":
        return made.to_sparse()
    if kind == "nested":
        return torch.nested.nested_tensor([made[0], made[0, :3]])
    if kind == "quantized":
        return torch.quantize_per_tensor(made, 0.1, 0, torch.qint8)
    if kind == "parameter":
        return nn.Parameter(made)
    if kind == "turned":
        return made.mT.contiguous().mT
    if kind == "expanded":
        return made[:1].expand_as(made)
    return made.to(getattr(torch, kind)) if kind else made


ODD = [
    *values(
        None, True, False, -1, 0, 7, 10**30, 0.5, -0.1, math.nan, math.inf, -math.inf, 1j, "", "x",
        ".2", b"x", [], [1, 2], (1,), (3, 4), {}, {"a": 1}, int, range(3), np.float64(0.2),
        Path("x"), torch.device("cpu"),
    ),
    *tensors("", "2", "2,6", "2,6,4", "3 numpy", "2,6,4 numpy", "2,6,4 list"),
    object, lambda: nn.Linear(2, 2), lambda: (lambda *a, **k: None), lambda: iter([1]),
    lambda: [torch.ones(2, 6, 4)],
]  # fmt: skip
"""What fits hardly any argument."""
FIELDS = tensors(
    "6,4", "1,2,6,4", "4", "2,6,5", "2,0,4", "0,6,4", "2,6,0", "2,6,1", "2,6,4 int64",
    "2,6,4 bool", "2,6,4 complex64", "2,6,4 meta", "2,6,4 sparse", "2,6,4 float8_e4m3fn",
    "2,6,4 numpy", "2,6,4 turned", "2,6,4 expanded", "2,6,4 parameter", "2,6,4 float16",
    "2,6,4 float64", "2,6,4 nested", "2,6,4 quantized", "2,1,4",
)  # fmt: skip
MASKS = tensors(
    "2,6", "2,6 int64", "2,7 bool", "6 bool", "2,6,1 bool", "2,6 bool meta", "2,6 list", " bool",
    "2,6 expanded", "2,6 numpy",
)  # fmt: skip
MASKS += [lambda: torch.zeros(2, 6, dtype=torch.bool), lambda: torch.ones(2, 6).bool().to_sparse()]
RATIOS = [
    *values(math.nan, math.inf, -math.inf, -0.1, 0.7, 5, "0.2", ".2", True, 10**400, [0.1] * DIM),
    *tensors(
        "", "4 nan", "5", "2,5,1", "5", " int64", " bool", "4 meta", "4 numpy", "4 complex64",
        "4 float64", "0", "2,1,4", "1,5,4", "4 sparse", "4 float16",
    ),
]  # fmt: skip
SEGMENTS = [
    *tensors("2,6", "2,8 int64", "6 int64", "2,6 meta", "2,6 list", "0 int64", "2,6 nan"),
    *tensors("2,6 bool", "2,6 complex64"), lambda: torch.tensor([0, 3, LENGTH]),
]  # fmt: skip
COUNTS = [
    *values(0, -3, True, 1.0, 2.5, "2", math.nan, None, 10**30, [2]), *tensors(" int64", ""),
]  # fmt: skip
NAMES = values("Explicit", "no-flux", "", 3, b"exact", ["exact"], "exact ", {"exact"}, None, "rms")
GRIDS = [
    *values(
        (2,), (2, 3, 1), (3, 3), (0, 6), (-2, -3), 6, "23", (2.0, 3.0), (True, 6), [2, 3], (6, 1),
        (1, 6), ("2", "3"), (math.nan, 3), None,
    ),
    *tensors("2 int64"),
]  # fmt: skip
DTYPES = values(torch.long, torch.bool, torch.complex64, "float32", float, torch.float16)
DEVICES = values("meta", "cuda", "gpu", "cpu:7", torch.device("meta"), 3)
FLAGS = [*values(1, 0, "yes", None), *tensors(" bool")]


def some_field(chance: random.Random) -> Tensor:
    """Draw a field in one of the precisions."""
    kinds = (torch.float32, torch.float32, torch.float64, torch.float16, torch.bfloat16)
    return torch.randn(BATCH, LENGTH, DIM).to(chance.choice(kinds))


def some_mask(chance: random.Random) -> Tensor:
    """Draw a mask whose second sequence is shorter."""
    mask = torch.ones(BATCH, LENGTH, dtype=torch.bool)
    mask[1, chance.randint(1, LENGTH) :] = False
    return mask
