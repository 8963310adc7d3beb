"""A small GPT in the style of nanoGPT: no library, causal inside its attention."""

import torch
from torch import nn
from torch.nn import functional as F

from depthpde.insertion.family import Family, NormOrder, into, out_of

WIDTH, HEADS, WORDS = 16, 4, 23


class CausalSelfAttention(nn.Module):
    def __init__(self, *, causal):
        super().__init__()
        self.c_attn, self.c_proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.causal = causal

    def forward(self, u):
        q, k, v = (
            each.unflatten(-1, (HEADS, -1)).transpose(1, 2)
            for each in self.c_attn(u).chunk(3, dim=-1)
        )
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.c_proj(mixed.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, *, causal):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attn = CausalSelfAttention(causal=causal)
        wide = 4 * WIDTH
        self.mlp = nn.Sequential(nn.Linear(WIDTH, wide), nn.GELU(), nn.Linear(wide, WIDTH))

    def forward(self, u):
        u = u + self.attn(self.ln_1(u))
        return u + self.mlp(self.ln_2(u))


class GPT(nn.Module):
    """Without targets it gives the logits of the last site alone, as nanoGPT does."""

    def __init__(self, *, causal=True, extra=False):
        super().__init__()
        torch.manual_seed(0)
        self.wte, self.wpe = nn.Embedding(WORDS, WIDTH), nn.Embedding(32, WIDTH)
        self.h = nn.ModuleList(Block(causal=causal) for _ in range(2))
        self.lm_head = nn.Linear(WIDTH, WORDS)
        self.extra = extra

    def forward(self, ids, targets=None):
        if self.extra and targets is None:
            raise RuntimeError("this model wants its targets")
        u = self.wte(ids) + self.wpe(torch.arange(ids.shape[1]))
        for block in self.h:
            u = block(u)
        if targets is None:
            return self.lm_head(u[:, [-1]]), None
        logits = self.lm_head(u)
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten())


NANO = Family(
    name="nano",
    norm=NormOrder.PRE,
    norms=("ln_1", "ln_2"),
    attention=out_of("attn"),
    ffn=out_of("mlp"),
    width="attn.c_attn",
    heads=into("attn.c_proj"),
)
