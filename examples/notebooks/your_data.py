# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Your own data, judged
#
# Arrays in, a verdict out. The series here are made up; put your own `x` and `y` in their place: numbers `[n, length]` or
# `[n, length, channels]`, tokens, images, a torch `Dataset` or a Hugging Face one.

# %%
import numpy as np

import depthpde as dp

random = np.random.default_rng(0)
y = random.integers(0, 2, 160)
t = np.arange(48)
slow = np.sin(2 * np.pi * (t / 24 + random.random((160, 1))))
fast = np.sin(2 * np.pi * (t / 16 + random.random((160, 1))))
x = np.where(y[:, None] == 0, slow, fast) + 0.6 * random.standard_normal((160, 48))
task = dp.Task.from_arrays("waves", x, y)
task

# %% [markdown]
# Every variant is trained from the same seeds. Two seeds only show that it runs; the report says how many a verdict takes.

# %%
variants = {"plain": {}, "diffusion": {"positions": ("after_embedding",)}}
result = dp.compare(
    task,
    variants,
    seeds=2,
    training={"updates": 30},
    model={"dim": 16, "blocks": 1},
    out="out/waves",
)
result

# %%
print(result.advice())
result.save("out/waves/compare.html")

# %% [markdown]
# One's own `nn.Module`, by the same statistics: a function that builds it.

# %%
import torch
from torch import nn


class Tiny(nn.Module):
    """A convolution and a mean."""

    def __init__(self) -> None:
        super().__init__()
        self.features, self.head = nn.Conv1d(1, 8, 9, padding=4), nn.Linear(8, 2)

    def forward(self, u: torch.Tensor, valid_mask: torch.Tensor | None = None) -> torch.Tensor:
        """Return logits [batch, 2] for series [batch, length, 1]."""
        return self.head(self.features(u.mT).relu().mean(-1))


class Blurred(Tiny):
    """The same, after one step of diffusion."""

    def __init__(self) -> None:
        super().__init__()
        self.blur = dp.Diffusion(1)

    def forward(self, u: torch.Tensor, valid_mask: torch.Tensor | None = None) -> torch.Tensor:
        """Return logits of the smoothed series."""
        return super().forward(self.blur(u, valid_mask=valid_mask))


own = dp.compare(
    task, {"tiny": Tiny, "blurred": Blurred}, seeds=2, training={"updates": 30}, out="out/waves"
)
own

# %% [markdown]
# Results stay on disk and are never computed twice; read them as rows or as a data frame.

# %%
dp.read_results("out/waves")
