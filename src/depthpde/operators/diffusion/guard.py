"""The check of a ratio that a compiled program makes as well.

Inside `torch.compile` a tensor has no numbers to look at while the program is traced. There the
check is an operator of its own, which looks when the program runs and gives zeros to add, so that
no derivative passes through it; exported programs hold plain torch operations only and go without.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from depthpde.operators.stability import Scheme, check_ratio


def checked(ratio: Tensor, scheme: Scheme, dimensions: int = 1) -> Tensor:
    """Return a ratio inside its stability bound, or say what is wrong with it.

    Args:
        ratio: r, of any shape.
        scheme: What one step does.
        dimensions: 1 along a sequence, 2 over an image.
    """
    if torch.compiler.is_exporting():
        return ratio
    if torch.compiler.is_compiling():
        zeros: Tensor = _check(ratio.detach(), scheme.value, dimensions)
        return ratio + zeros
    return check_ratio(ratio, scheme, dimensions)


@torch.library.custom_op("depthpde::check_ratio", mutates_args=())
def _check(ratio: Tensor, scheme: str, dimensions: int) -> Tensor:
    return torch.zeros_like(check_ratio(ratio, Scheme(scheme), dimensions))


@_check.register_fake
def _(ratio: Tensor, scheme: str, dimensions: int) -> Tensor:
    return torch.empty_like(ratio)


@_check.register_vmap
def _(info: Any, in_dims: Any, ratio: Tensor, scheme: str, dimensions: int) -> Any:
    return _check(ratio, scheme, dimensions), in_dims[0]
