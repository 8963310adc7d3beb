"""A linear map followed by GELU on the CPU: bias, nonlinearity and their gradients in one pass.

    out = GELU(u Wᵀ + b)

torch copies the bias into the product's place before the product, and reads the field again for
the nonlinearity and for the bias's gradient. The products are those of `linear_map`; the kernels
stand in `kernels/gelu.py`.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from depthpde.operators.diffusion.operator import apply_plainly, runs_eagerly
from depthpde.operators.kernels.gelu import gelu_rows, gelu_rows_adjoint
from depthpde.operators.kernels.lanes import FLOATS
from depthpde.operators.kernels.threads import SMALL, TASKS, launch
from depthpde.operators.linear_map import PLAIN, project, pull_back, weight_gradient
from depthpde.shapes import Field


def supports(u: Field, weight: Tensor, bias: Tensor | None) -> bool:
    """Tell whether the kernel does this case, here and now."""
    return (
        bias is not None
        and bias.shape == weight.shape[:1]  # torch spreads one number; the kernel reads a row
        and u.dtype == weight.dtype == bias.dtype == torch.float32
        and u.numel() >= SMALL
        and weight.shape[0] % FLOATS == 0
        and runs_eagerly(u)
        and all(type(each) in PLAIN for each in (u, weight, bias))
        and weight.device == u.device
        and not torch.is_autocast_enabled("cpu")
    )


def linear_gelu(u: Field, weight: Tensor, bias: Tensor) -> Field:
    """Map every site linearly, and apply GELU. Arguments as of `supports`, where it says so.

        out = y Φ(y),    y = u Wᵀ + b

    Args:
        u: The field, [..., inner].
        weight: [outer, inner].
        bias: [outer].
    """
    out: Field = apply_plainly(_LinearGelu, u, weight, bias)
    return out


class _LinearGelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, u: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        product = project(u.reshape(-1, u.shape[-1]), weight)
        out = torch.empty_like(product)
        rows, each, tasks = _parts(product)
        launch(gelu_rows, tasks, product.numel(), *map(_flat, (product, bias, out)), rows, each)
        ctx.save_for_backward(u, weight, bias, product)
        return out.view(*u.shape[:-1], -1)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        u, weight, bias, product = ctx.saved_tensors
        if torch.is_grad_enabled():  # a gradient of this gradient will be asked for
            inputs = [each for each in (u, weight, bias) if each.requires_grad]
            out = F.gelu(F.linear(u, weight, bias))
            found = iter(torch.autograd.grad(out, inputs, grads[0], create_graph=True))
            return tuple(next(found) if each.requires_grad else None for each in (u, weight, bias))
        rows, each, tasks = _parts(product)
        slopes, sums = torch.empty_like(product), product.new_zeros(tasks, product.shape[1])
        g = grads[0].contiguous()
        launch(
            gelu_rows_adjoint, tasks, product.numel(),
            *map(_flat, (product, bias, g, slopes, sums)), rows, each,
        )  # fmt: skip
        wanted = ctx.needs_input_grad
        du = pull_back(slopes, weight).view(u.shape) if wanted[0] else None
        dw = weight_gradient(slopes, u.reshape(rows, -1)) if wanted[1] else None
        return du, dw, sums.sum(0) if wanted[2] else None


def _parts(product: Tensor) -> tuple[int, int, int]:
    """Share rows out: how many there are, rows of a task, tasks; whatever the threads."""
    rows = product.shape[0]
    each = -(-rows // TASKS)
    return rows, each, -(-rows // each)


def _flat(u: Tensor) -> Any:
    return u.detach().contiguous().numpy().reshape(-1)
