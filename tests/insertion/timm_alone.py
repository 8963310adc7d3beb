"""Run timm in a process of its own, with a torchvision that holds only names.

The published torchvision is built for CUDA and breaks beside a CPU build of torch; timm imports a
few names of it that a ViT never calls.

    python timm_alone.py TIMM            walk every position, print a report
    python timm_alone.py TIMM FILE.py    run a file
"""

from __future__ import annotations

import json
import runpy
import sys
import types
from importlib.machinery import ModuleSpec
from typing import Any


class Member(type):
    """The class of empty classes whose every member is its own name."""

    def __getattr__(cls, name: str) -> str:
        if name.startswith("__"):
            raise AttributeError(name)
        return name


class Names(types.ModuleType):
    """A module in which every name is an empty class."""

    def __getattr__(self, name: str) -> Member:
        if name.startswith("__"):
            raise AttributeError(name)
        return Member(name, (), {})


class Finder:
    """Finds every module below torchvision."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        below = name.split(".")[0] == "torchvision"
        return ModuleSpec(name, Finder, is_package=True) if below else None

    @staticmethod
    def create_module(spec: ModuleSpec) -> types.ModuleType:
        return Names(spec.name)

    @staticmethod
    def exec_module(module: types.ModuleType) -> None:
        return None


def report() -> dict[str, Any]:
    import torch
    from timm.models.vision_transformer import VisionTransformer

    from depthpde.insertion.insert import insert
    from insertion.walk import walk
    from insertion.zoo import BLOCKS, DIM, HEADS, Animal, pixels, spread

    def build() -> torch.nn.Module:
        sizes = {"embed_dim": DIM, "depth": BLOCKS, "num_heads": HEADS, "num_classes": 5}
        model = VisionTransformer(
            img_size=(8, 12), patch_size=4, init_values=0.5, reg_tokens=2, **sizes
        )
        return spread(model)

    def call(model: torch.nn.Module, image: torch.Tensor, valid: None) -> torch.Tensor:
        return model.forward_features(image)

    class Part(torch.nn.Module):
        def __init__(self, blocks: torch.nn.Module) -> None:
            super().__init__()
            self.blocks = blocks

    def refusal(ask: Any) -> str:
        try:
            ask()
        except ValueError as error:
            return str(error)
        return ""

    def at(name: str, module: str, layout: str, **options: Any) -> list[bool]:
        """Behind one module of a network: the identity, then acting, then gone."""
        import timm

        import depthpde as dp

        torch.manual_seed(0)
        model = timm.create_model(name, pretrained=False, num_classes=5, **options).eval()
        image = torch.randn(2, 3, 64, 64)
        with torch.no_grad():
            plain = model(image)
            inserted = dp.insert(model, at=module, layout=layout)
            same = torch.equal(model(image), plain)
            inserted.remove()
            inserted = dp.insert(model, at=module, layout=layout, initial_ratio=0.1)
            acts = not torch.equal(model(image), plain)
            planar = next(iter(inserted.layers.values())).grid
            inserted.remove()
            blocks = dp.probe(model, image, baseline=False).blocks
            return [same, acts, bool(planar), torch.equal(model(image), plain), blocks > 0]

    with torch.no_grad():
        wrong = walk(Animal(build, pixels, call, pads=False), turn=0)
    model = build()
    inserted = insert(model, "after_embedding")
    (layer,) = inserted.layers.values()
    return {
        "wrong": wrong,
        "grid": layer.grid,
        "told": str(inserted),
        "causal": refusal(lambda: model.forward_features(pixels(), is_causal=True)),
        "resnet": at("resnet18", "layer3.1", "bchw"),
        "convnext": at("convnext_atto", "stages.1.blocks.1", "bchw"),
        "swin": at(
            "swin_tiny_patch4_window7_224", "layers.1.blocks.0", "bhwc", img_size=64, window_size=2
        ),
        "part": refusal(lambda: insert(Part(build().blocks), "after_ffn")),
    }


if __name__ == "__main__":
    sys.path.append(sys.argv[1])
    sys.meta_path.insert(0, Finder)
    if len(sys.argv) > 2:
        runpy.run_path(sys.argv[2], run_name="__main__")
    else:
        print(json.dumps(report()))
