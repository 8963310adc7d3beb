"""Saved models: weights in safetensors, the config in JSON, one folder a model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from depthpde import __version__
from depthpde.models.card import write_card
from depthpde.models.config import ModelConfig
from depthpde.models.encoder import Encoder
from depthpde.models.hub import fetch, push
from depthpde.models.initialisation import initialise
from depthpde.models.placed import Observer

WEIGHTS, CONFIG = "model.safetensors", "config.json"
MODEL_TYPE = "depthpde"
"""By which transformers' Auto classes know our models."""
AUTO_PREFIX = "model."
"""What those classes put before every weight's name."""

Model = TypeVar("Model", bound="Pretrained")


class Pretrained(nn.Module):
    """A model that can be saved to a folder and brought back, to the bit.

    Args:
        config: The model's config.
        generator: Source of the first weights; None takes torch's own.
    """

    def __init__(self, config: ModelConfig, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.config = config
        # What the parts draw for themselves while being built is thrown away.
        with torch.random.fork_rng(devices=[]):
            self.encoder = Encoder(config)
            self.build(config)
        initialise(self, config, generator)

    def build(self, config: ModelConfig) -> None:
        """Build the head behind the encoder."""

    def observe(self, observer: Observer) -> Callable[[], None]:
        """Tell this one of the field at every position, until the returned function is called."""
        return self.encoder.observe(observer)

    def save_pretrained(self, path: str | Path) -> Path:
        """Write the weights and the config into a folder, and return it."""
        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        weights = {name: each.detach().contiguous() for name, each in self.state_dict().items()}
        save_file(weights, folder / WEIGHTS, metadata={"format": "pt"})
        values = {
            "model": type(self).__name__,
            "model_type": MODEL_TYPE,
            "depthpde": __version__,
            "config": self.config.to_dict(),
        }
        (folder / CONFIG).write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")
        return folder

    def push_to_hub(self, name: str, *, card: str | None = None, private: bool = False) -> str:
        """Put weights, config and a card on the Hugging Face hub; return the address.

        Args:
            name: ``owner/name``; needs the extra ``hf`` and a token of the hub.
            card: What `dp.model_card` returned, with task, data and metrics; unless given, one
                that says what the model is and that nothing was measured.
            private: Whether a new repository is hidden from others.
        """
        return push(name, self.save_pretrained, card or write_card(self), private=private)

    @classmethod
    def from_pretrained(
        cls: type[Model], path: str | Path, *, revision: str | None = None
    ) -> Model:
        """Bring a saved model back, in evaluation mode.

        Args:
            path: A folder, or ``owner/name`` on the Hugging Face hub (needs the extra ``hf``).
            revision: A branch, tag or commit on the hub.
        """
        folder = saved_folder(path, revision)
        config = cls._read_config(folder / CONFIG)
        # The first weights are replaced at once, so any will do; torch's own stream stays put.
        model = cls(config, generator=torch.Generator().manual_seed(0))
        weights, _ = read_weights(folder / WEIGHTS)
        weights = {name.removeprefix(AUTO_PREFIX): each for name, each in weights.items()}
        model.to(next(iter(weights.values())).dtype)
        try:
            model.load_state_dict(weights)
        except RuntimeError as error:
            raise ValueError(
                f"`{folder / WEIGHTS}` must hold the weights of the config beside it; {error}"
            ) from error
        return model.eval()

    @classmethod
    def _read_config(cls, file: Path) -> ModelConfig:
        values = json.loads(file.read_text(encoding="utf-8"))
        if not isinstance(values, dict) or values.get("model") != cls.__name__:
            got = values.get("model") if isinstance(values, dict) else values
            raise ValueError(
                f"`{file}` must be of a {cls.__name__}, got {got!r}; "
                "load it with the class of that name"
            )
        return ModelConfig.from_dict(values["config"])


def read_weights(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Return the tensors and the metadata of a safetensors file; an error names what is wrong."""
    try:
        with safe_open(path, framework="pt") as file:
            names = list(file.keys())
            return {name: file.get_tensor(name) for name in names}, file.metadata() or {}
    except SafetensorError as error:
        raise ValueError(
            f"`{path}` must be a whole safetensors file, got {error}; copy or save it again"
        ) from error


def saved_folder(path: str | Path, revision: str | None = None) -> Path:
    """Return a folder with a saved model, from here or from the hub, or say what it lacks."""
    folder = fetch(path, (CONFIG, WEIGHTS), revision=revision)
    missing = [name for name in (CONFIG, WEIGHTS) if not (folder / name).is_file()]
    if missing:
        raise FileNotFoundError(
            f"`path` must be a folder with {CONFIG} and {WEIGHTS}, got {folder} without "
            f"{' and '.join(missing)}; write one with save_pretrained"
        )
    return folder
