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
# # The equation behind a Transformer
#
#     ∂u/∂t = D u + A[u] + R(u),   kept in bounds by S        network depth is PDE time
#
# Diffusion alone smooths; attention alone makes tokens cluster; both together are what the papers look at.

# %%
# %matplotlib inline
import torch
from matplotlib.figure import Figure

import depthpde as dp

# %% [markdown]
# ## Diffusion alone
# A spike, one to sixteen steps. The mean stays, the energy falls, nothing overshoots.

# %%
u = torch.zeros(1, 64, 1)
u[0, 32] = 1.0
axes = Figure(figsize=(6, 3), layout="constrained").subplots()
for steps in (1, 4, 16):
    v = dp.diffuse(u, torch.tensor([0.25]), steps=steps)
    axes.plot(v[0, :, 0], label=f"{steps} steps")
    assert torch.allclose(v.sum(), u.sum())
    assert v.min() >= 0
axes.legend()
axes.figure

# %% [markdown]
# ## How tokens cluster
# A system of the gallery, simulated until its tokens are two clusters.

# %%
path = dp.simulate(dp.systems["clustering"], events=[dp.merged(clusters=2)])
print(path.status, f"at t = {path.times[-1]:.2f}")
path.plot("clusters").figure

# %% [markdown]
# ## A network's own weights as an equation
# Blocks of a small Transformer become terms of the equation. One split step a block is the network itself.

# %%
torch.manual_seed(0)
settings = dp.ModelConfig(dim=16, blocks=3, heads=2, vocabulary=20, length=12, classes=3)
model = dp.Classifier(settings).eval()
blocks, mask = dp.follow(
    model, torch.randint(20, (2, 12))
)  # the field before the first block and after each
same = dp.simulate(dp.transcribe(model), blocks.states[0], blocks.times, method="lie")
apart = (same.states - blocks.states).abs().max().item()
print(f"{len(blocks.times) - 1} blocks; network and equation differ by {apart:.1e}")
assert apart < 1e-4
