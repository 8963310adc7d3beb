"""One diffusion problem: what every path is given, and the bookkeeping they share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from depthpde.operators.boundary import Boundary
from depthpde.operators.stability import Scheme
from depthpde.shapes import Field


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """The settings of one call of `diffuse` that are not tensors."""

    steps: int = 1
    """Number of PDE steps."""
    scheme: Scheme = Scheme.EXPLICIT
    """What one step does."""
    boundary: Boundary = Boundary.NO_FLUX
    """What the ends of the sequence see."""
    dilation: int = 1
    """Distance between neighbouring sites."""
    width: int = 0
    """Sites in a row of an image laid out row by row; 0 for a sequence."""

    def refusal(self, path: str, does: str, device: torch.device | None = None) -> ValueError:
        """Build the error of a path that cannot do this problem, or not on this device."""
        where = "" if device is None else f" on {device.type}"
        return ValueError(
            f"`method` {path!r} does {does}; got scheme {self.scheme.value!r} with "
            f"{self.boundary.value!r} ends{where}; use method='auto' or 'reference'"
        )


def on_gpu(u: Tensor) -> bool:
    """Tell whether Triton computes what happens to this tensor."""
    return u.device.type == "cuda" and _has_triton()


@lru_cache(maxsize=1)
def _has_triton() -> bool:
    return find_spec("triton") is not None


@lru_cache(maxsize=8)
def device_module(name: str) -> Any:
    """Import a file of `device` when it is first used: most machines have no Triton."""
    return import_module(f"depthpde.operators.diffusion.device.{name}")


def accumulation_dtype(dtype: torch.dtype) -> torch.dtype:
    """Give the dtype a path computes in: half precision is summed in float32."""
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype


def without_grad(x: Tensor) -> Tensor:
    """Leave autograd where there is something to leave: `Tensor.detach` takes its time as well."""
    return x.detach() if x.requires_grad else x


def sum_to(values: Tensor, shape: torch.Size) -> Tensor:
    """Sum a gradient over the axes that were broadcast, and give it the wanted shape."""
    if values.shape == shape:
        return values
    axes = [axis for axis in range(values.ndim) if shape[axis] == 1 and values.shape[axis] != 1]
    return (values.sum(dim=axes, keepdim=True) if axes else values).reshape(shape)


def is_uniform(ratio: Tensor) -> bool:
    """Tell whether the ratio is the same at every edge of a sequence."""
    return ratio.shape[1] == 1


def as_compute(u: Field, ratio: Tensor) -> tuple[Field, Tensor]:
    """Give the field and the ratio in the dtype of accumulation."""
    dtype = accumulation_dtype(u.dtype)
    return as_dtype(u, dtype), as_dtype(ratio, dtype)


def as_dtype(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Convert where there is something to convert: `Tensor.to` takes its time even for nothing."""
    return x if x.dtype is dtype else x.to(dtype)
