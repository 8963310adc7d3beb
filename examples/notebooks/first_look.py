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
# # A first look at a model
#
# Is it healthy? Does anything reach what it must not? What does one added layer do? Ten minutes, a small BERT, no download.
# With your own model, change the first cell only.

# %%
# %matplotlib inline
import torch
from transformers import BertConfig, BertForSequenceClassification

import depthpde as dp

torch.manual_seed(0)
config = BertConfig(
    vocab_size=999,
    hidden_size=64,
    num_hidden_layers=4,
    num_attention_heads=4,
    intermediate_size=128,
)
model = BertForSequenceClassification(config)  # or .from_pretrained("my-model")
batch = {"input_ids": torch.randint(1, 999, (8, 32)), "labels": torch.randint(2, (8,))}

# %% [markdown]
# ## Healthy?
# Verdicts in plain words, the worst first. A network that was never trained is no patient: some of what it says here is that.

# %%
diagnosis = dp.diagnose(model, batch)
diagnosis

# %% [markdown]
# Every number behind it is there, labelled by depth.

# %%
for label, value in diagnosis.trajectory["drift.cosine"].singles():
    print(f"{label:12} {value:.3f}")

# %% [markdown]
# ## Does anything leak?
# Six questions; where an answer is no, the module through which it happens is named.

# %%
dp.audit(model, batch)

# %% [markdown]
# ## One layer more
# Diffusion along the sequence, the identity until it has learned to be something else.

# %%
before = model.eval()(**batch).logits
inserted = dp.insert(model, "after_embedding")
assert torch.equal(model(**batch).logits, before)
inserted

# %% [markdown]
# Train it: its ratios with a rate of their own.

# %%
model.train()
optimizer = torch.optim.AdamW(
    [
        {"params": inserted.parameters(), "lr": 1e-1},
        {"params": [p for n, p in model.named_parameters() if "depthpde" not in n], "lr": 1e-3},
    ]
)
for _ in range(20):
    model(**batch).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print(inserted.status())

# %% [markdown]
# What was learned, as matplotlib axes, to be styled and saved.

# %%
axes = inserted.plot()
axes.set_title("after twenty updates")
axes.figure

# %% [markdown]
# What does it do now? Switch it off, and on again.

# %%
model.eval()
with inserted.disabled():
    without = model(**batch).loss.item()
print(f"loss {model(**batch).loss.item():.3f} with it, {without:.3f} without")

# %%
inserted.remove()  # the model's own keys and hooks again
assert not any("depthpde" in name for name in model.state_dict())
