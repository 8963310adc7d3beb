"""VisionTransformer: patches as sites, diffusion over the plane."""

from __future__ import annotations

from dataclasses import replace

import torch

from depthpde.layers.embedding import InputKind
from depthpde.models.classifier import Classifier
from depthpde.models.config import ModelConfig, TaskLike, check_config


class VisionTransformer(Classifier):
    """Tell the class of an image, from its patches.

        u(x) = W · patch(x) + p(x),    sites on a grid,    diffusion by the five-point stencil

    A classifier whose input is patches. On a line (`geometry="line"`) diffusion would join the
    end of one row to the start of the next; on the plane every patch exchanges with the four
    around it.

    >>> model = dp.VisionTransformer(dp.ModelConfig(grid=(4, 4), patch=4, channels=3, classes=10))
    >>> model(torch.randn(2, 3, 16, 16)).shape
    torch.Size([2, 10])

    Args:
        config: The model's config; `input` is set to patches.
        task: Fills in grid and classes; None takes them from the config.
        generator: Source of the first weights; None takes torch's own.
    """

    def __init__(
        self,
        config: ModelConfig,
        task: TaskLike | None = None,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(
            replace(check_config(config), input=InputKind.PATCH), task, generator=generator
        )
