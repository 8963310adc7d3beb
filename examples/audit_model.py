"""Audit: a GPT-2 that is right, and the same with a smoothing that sees one token ahead."""

from __future__ import annotations

from pathlib import Path

import torch
from matplotlib.figure import Figure
from transformers import GPT2Config, GPT2LMHeadModel

import depthpde as dp

OUT = Path("out/gallery")
LENGTH = 12


class Smoother(torch.nn.Module):
    """The mistake: a symmetric average inside a causal model."""

    def forward(self, u: torch.Tensor) -> torch.Tensor:
        """Average every site with both neighbours."""
        return dp.diffuse(u, 0.25)


@torch.no_grad()
def influence(model: GPT2LMHeadModel, tokens: torch.Tensor) -> torch.Tensor:
    """Return how far every output moves when one input token is another: [input, output]."""
    before = model(tokens).logits
    rows = []
    for site in range(LENGTH):
        changed = tokens.clone()
        changed[0, site] = (changed[0, site] + 1) % 50
        rows.append((model(changed).logits - before).norm(dim=-1)[0])
    return torch.stack(rows)


def main() -> None:
    """Audit both, print the reports, draw what reaches what."""
    torch.manual_seed(0)
    ends = {"bos_token_id": None, "eos_token_id": None}
    config = GPT2Config(vocab_size=50, n_embd=32, n_layer=2, n_head=4, **ends)
    model = GPT2LMHeadModel(config).eval()
    tokens = torch.randint(0, 50, (1, LENGTH))
    figure = Figure(figsize=(8, 3.8), layout="constrained")
    for ax, title in zip(figure.subplots(1, 2), ("right", "leaks"), strict=True):
        if title == "leaks":
            block = model.transformer.h[1]
            block.ln_1 = torch.nn.Sequential(block.ln_1, Smoother())
        report = dp.audit(model, tokens, causal=True)
        print(f"--- {title}\n{report}")
        ax.pcolormesh(influence(model, tokens).add(1e-6).log10(), cmap="Blues")
        ax.set(xlabel="output site", ylabel="changed input site", title=f"{title}: log₁₀ movement")
    OUT.mkdir(parents=True, exist_ok=True)
    figure.savefig(OUT / "audit_model.png", dpi=100)


if __name__ == "__main__":
    main()
