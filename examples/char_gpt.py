"""A byte-level GPT on the language reference that every Python carries, with upwind diffusion."""

from __future__ import annotations

import sys
from pathlib import Path
from pydoc_data.topics import topics

import torch
from matplotlib.figure import Figure

import depthpde as dp

OUT, WINDOW = Path("out/gallery"), 128
UPWIND = {"kind": "diffusion", "scheme": "upwind", "bound": 1.0, "initial_ratio": 0.3}
VARIANTS = {
    "plain": {},
    "upwind diffusion": {"positions": ("between_blocks",), "layer": UPWIND},
    "free convolution": {"positions": ("between_blocks",), "layer": "depthwise_conv"},
}


def train(model: dp.LanguageModel, text: torch.Tensor, updates: int) -> list[float]:
    """Train on random windows and return the loss of every update."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    draw, losses = torch.Generator().manual_seed(0), []
    for _ in range(updates):
        at = torch.randint(len(text) - WINDOW, (16, 1), generator=draw) + torch.arange(WINDOW + 1)
        logits, wanted = model(text[at[:, :-1]]), text[at[:, 1:]]
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), wanted.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


def main(*, quick: bool = False) -> None:
    """Train three models from one seed, draw their losses, let the second one write."""
    words = "\n".join(topics[name] for name in sorted(topics)).encode()
    text = torch.tensor(list(words)) + 1  # 0 is padding
    ax = Figure(figsize=(6.5, 3.8), layout="constrained").subplots()
    for (name, change), line in zip(VARIANTS.items(), ("-", "--", ":"), strict=True):
        config = dp.ModelConfig(dim=64, blocks=2, heads=4, vocabulary=257, length=256, **change)
        model = dp.LanguageModel(config, generator=dp.generator(0, "init"))
        losses = torch.tensor(train(model, text, 20 if quick else 250))
        smooth = losses.unfold(0, 10, 1).mean(dim=1)
        ax.plot(smooth, linestyle=line, label=f"{name}, {smooth[-1]:.2f}")
        wrote = model.generate(torch.tensor([list(b"The ")]) + 1, 60)[0] - 1
        print(f"{name}: loss {smooth[-1]:.3f}; {bytes(wrote.clamp(0, 255).tolist())!r}")
    ax.set(xlabel="update", ylabel="loss, mean of ten", title="next byte of Python's reference")
    ax.legend()
    OUT.mkdir(parents=True, exist_ok=True)
    ax.figure.savefig(OUT / "char_gpt.png", dpi=100)


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
