"""H(ω) of a layer, measured: send waves through it and see what comes out."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from depthpde.errors import check_positive


def measure_transfer(layer: nn.Module, omega: Tensor, *, dim: int | None = None) -> Tensor:
    """Measure what a linear layer multiplies the wave e^{iωx} with, far from the ends.

        H(ω) = out(x) / e^{iωx}    at the middle site

    Args:
        layer: A layer with `reach` and `dim`, linear and the same at every site.
        omega: Angular frequencies in radians per site, [modes], in the layer's own dtype.
        dim: Number of features; the layer's own by default.

    Returns:
        [modes, dim], complex.
    """
    width = check_positive("dim", layer.dim if dim is None else dim)  # type: ignore[arg-type]
    half = int(layer.reach) + 64  # type: ignore[arg-type]  # implicit and exact fade fast
    phase = omega[:, None] * torch.arange(-half, half + 1, dtype=omega.dtype, device=omega.device)
    waves = torch.cat((torch.cos(phase), torch.sin(phase)))[..., None].repeat(1, 1, width)
    with torch.no_grad():
        middle = layer(waves)[:, half]
    real, imaginary = middle.split(len(omega))
    return torch.complex(real, imaginary)
