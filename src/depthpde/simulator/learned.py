"""Simulator: a model that integrates the equation where a Transformer stacks its blocks.

    u(0) = embed(input),     u_t = α L u + A_l[S u] + R_l(S u)  for l ≤ t < l + 1,     S u(blocks)

Same embedding, same pooling and head, same parameters under the same names, so that the two start
from the same numbers and can exchange weights.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Self

import torch
from torch import nn

from depthpde.models.classifier import Classifier
from depthpde.models.config import ModelConfig, TaskLike
from depthpde.models.language import LanguageModel
from depthpde.models.pretrained import CONFIG, WEIGHTS, Pretrained, read_weights, saved_folder
from depthpde.simulator.block import SimulatedBlock
from depthpde.simulator.config import SimulatorConfig

KIND = "simulator"
"""The key of a saved model's config file under which its integration stands."""


class Simulated(Pretrained):
    """A model whose blocks are integrated; mixed into one of the models.

    Args:
        config: The model's config, with nothing placed.
        task: Fills in what the task knows; None takes it from the config.
        simulator: How to integrate; the Transformer itself unless given.
        generator: Source of the first weights; None takes torch's own.
    """

    def __init__(
        self,
        config: ModelConfig,
        task: TaskLike | None = None,
        *,
        simulator: SimulatorConfig | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        self.simulator = simulator or SimulatorConfig()
        super().__init__(config, task, generator=generator)  # type: ignore[arg-type,misc]

    def build(self, config: ModelConfig) -> None:
        """Build what stands behind the encoder, and put integrated blocks into it."""
        super().build(config)
        blocks = [SimulatedBlock(config, index, self.simulator) for index in range(config.blocks)]
        for block, after in itertools.pairwise(blocks):
            block.follow(after)
        self.encoder.blocks = nn.ModuleList(blocks)

    @classmethod
    def from_transformer(cls, model: Pretrained, simulator: SimulatorConfig | None = None) -> Self:
        """Integrate a trained Transformer's own weights; they are copied.

        Args:
            model: A model of the same kind, with nothing placed.
            simulator: How to integrate.
        """
        first = next(model.parameters())
        made = cls(model.config, simulator=simulator, generator=torch.Generator().manual_seed(0))
        made.to(first.device, first.dtype)
        weights = model.state_dict()
        own = {name: each for name, each in made.state_dict().items() if ".diffusivity." in name}
        made.load_state_dict({**own, **weights})
        return made.train(model.training)

    def save_pretrained(self, path: str | Path) -> Path:
        """Write the weights and both configs into a folder, and return it."""
        folder = super().save_pretrained(path)
        saved = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        saved[KIND] = self.simulator.to_dict()
        (folder / CONFIG).write_text(json.dumps(saved, indent=2) + "\n", encoding="utf-8")
        return folder

    @classmethod
    def from_pretrained(cls, path: str | Path, *, revision: str | None = None) -> Self:
        """Bring a saved simulator back, in evaluation mode.

        Args:
            path: A folder, or ``owner/name`` on the Hugging Face hub (needs the extra ``hf``).
            revision: A branch, tag or commit on the hub.
        """
        folder = saved_folder(path, revision)
        config = cls._read_config(folder / CONFIG)
        saved = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        simulator = SimulatorConfig.from_dict(saved[KIND])
        model = cls(config, simulator=simulator, generator=torch.Generator().manual_seed(0))
        weights, _ = read_weights(folder / WEIGHTS)
        model.to(next(iter(weights.values())).dtype)
        model.load_state_dict(weights)
        return model.eval()


class Simulator(Simulated, Classifier):
    """Tell the class of a sequence or an image by integrating the equation.

        logits = W pool(S u(T)) + b,    T = blocks

    Takes what `Classifier` takes and is trained like it. With the Lie integrator and one step a
    block it is the `Classifier` of the same weights.

    >>> config = dp.ModelConfig(dim=16, vocabulary=9, length=12, classes=3)
    >>> model = dp.Simulator(config, simulator=dp.SimulatorConfig(method="heun", steps=2))
    """


class LanguageSimulator(Simulated, LanguageModel):
    """Tell the next token at every site by integrating the causal equation.

        logits(x) = E S u(x, T)

    Takes what `LanguageModel` takes; diffusion, if any, is upwind. Runs whole sequences only.

    >>> config = dp.ModelConfig(dim=16, vocabulary=9, length=12)
    >>> model = dp.LanguageSimulator(config, simulator=dp.SimulatorConfig(method="strang"))
    """


def build_simulator(
    config: ModelConfig,
    simulator: SimulatorConfig,
    task: TaskLike,
    generator: torch.Generator | None = None,
) -> Simulated:
    """Build the simulator that fits a task.

    Args:
        config: The model's config.
        simulator: How to integrate.
        task: What it is for; one of language takes a `LanguageSimulator`.
        generator: Source of the first weights.
    """
    kind = LanguageSimulator if str(task.kind) == "language" else Simulator
    return kind(config, task, simulator=simulator, generator=generator)
