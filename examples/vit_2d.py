"""A vision Transformer with diffusion over the plane of its patches: bars in noise."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from matplotlib.figure import Figure

import depthpde as dp

OUT, SIDE, PATCH = Path("out/gallery"), 32, 4
HERE = {"positions": ("between_blocks",)}
VARIANTS = {"plain": {}, "plane": HERE, "line (control)": HERE | {"geometry": "line"}}


def draw_images(count: int, draw: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Return lying (0) and standing (1) bars at a random place under noise."""
    labels = torch.randint(2, (count,), generator=draw)
    at = torch.randint(8, SIDE - 8, (2, count, 1, 1), generator=draw)
    y, x = torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing="ij")
    across, down = (x - at[0]).abs(), (y - at[1]).abs()
    bars = torch.stack([(across < 8) & (down < 2), (across < 2) & (down < 8)])
    shape = bars[labels, torch.arange(count)].float()
    return (shape + 0.5 * torch.randn(shape.shape, generator=draw))[:, None], labels


def main(*, quick: bool = False) -> None:
    """Train the variants on the same images, draw an image and the test accuracy."""
    updates, every = (6, 3) if quick else (160, 10)
    test, wanted = draw_images(64 if quick else 1000, torch.Generator().manual_seed(1))
    picture, ax = Figure(figsize=(8, 3.6), layout="constrained").subplots(1, 2)
    picture.imshow(test[0, 0].numpy(), cmap="gray")
    picture.set(title="lying or standing?", xticks=[], yticks=[])
    for (name, change), line in zip(VARIANTS.items(), ("-", "--", ":"), strict=True):
        size = {"dim": 32, "blocks": 2, "heads": 4, "grid": (8, 8), "patch": PATCH, "channels": 1}
        config = dp.ModelConfig(**size, classes=2, **change)
        model = dp.VisionTransformer(config, generator=dp.generator(0, "init"))
        optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
        draw, scores = torch.Generator().manual_seed(0), {}
        for update in range(1, updates + 1):
            images, labels = draw_images(64, draw)
            torch.nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
            optimizer.zero_grad()
            if update % every == 0:
                with torch.no_grad():
                    scores[update] = (model(test).argmax(-1) == wanted).double().mean().item()
        ax.plot(list(scores), list(scores.values()), linestyle=line, label=name)
        print(f"{name}: test accuracy {scores[updates]:.3f}")
    ax.set(xlabel="update", ylabel="test accuracy", title="one seed: a look, no verdict")
    ax.legend()
    OUT.mkdir(parents=True, exist_ok=True)
    ax.figure.savefig(OUT / "vit_2d.png", dpi=100)


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
