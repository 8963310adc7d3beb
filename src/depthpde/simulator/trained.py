"""The equation of a trained model as a system: its own weights, followed in continuous depth.

    u_{l+1} = block_l(u_l)        is one Lie step of dt = 1 of        u_t = A(u, t) + R(u, t)

Known in closed form: Lie steps of dt = 1 are the forward pass, and halving fine ones halves their
distance from the accurate solution.
"""

from __future__ import annotations

import inspect
import math

import torch
from torch import Tensor
from torch.nn import functional

from depthpde.errors import check_range
from depthpde.models.classifier import Classifier
from depthpde.models.config import ModelConfig
from depthpde.models.pretrained import Pretrained
from depthpde.seeds import generator
from depthpde.shapes import Field
from depthpde.simulator.simulate import simulate
from depthpde.simulator.system import Known, System
from depthpde.simulator.transcribe import follow, transcribe
from depthpde.solvers.trajectory import Trajectory

FINE = (32, 64)
"""Lie steps of a block between which the order is observed."""
SYMBOLS, WIDTH, BATCH = 6, 16, 32


def trained(blocks: float = 3, tokens: float = 16, updates: float = 80) -> System:
    """A small Transformer learns which of two tokens is the more frequent; its own equation."""
    check_range("blocks", blocks, 1, 64)
    check_range("tokens", tokens, 2, 4096)
    check_range("updates", updates, 0, 100_000)
    config = ModelConfig(
        dim=WIDTH, heads=2, blocks=int(blocks), vocabulary=SYMBOLS, length=int(tokens), classes=2
    )
    model = Classifier(config, generator=generator(0, "trained", "weights")).double()
    _train(model, int(tokens), int(updates))
    shown, _ = _examples(int(tokens), 4, generator(0, "trained", "shown"))
    return model_system(
        model.eval().requires_grad_(False),
        shown,
        title=(inspect.getdoc(trained) or "").splitlines()[0],
        parameters={"blocks": float(blocks), "tokens": float(tokens), "updates": float(updates)},
    )


def model_system(
    model: Pretrained,
    inputs: Tensor,
    *,
    title: str = "A trained model's own equation.",
    parameters: dict[str, float] | None = None,
) -> System:
    """Make a system of a model's own equation: its weights, its field, a time for each block.

    >>> model = dp.Classifier(dp.ModelConfig(dim=8, heads=2, vocabulary=9, length=12, classes=3))
    >>> system = dp.model_system(model.double().eval(), torch.randint(9, (1, 12)))
    >>> all(each.agrees for each in system.known(dp.simulate(system, rtol=1e-8)))
    True

    Args:
        model: One of our models, in evaluation mode, with nothing placed in it.
        inputs: What it takes in, without padding.
        title: What happens, in one sentence.
        parameters: What `vary` may change; only `trained` has any.
    """
    own, _ = follow(model, inputs)
    equation, depth = transcribe(model), len(own.times) - 1

    def lie(steps: int) -> Field:
        with torch.no_grad():
            return simulate(
                equation, own.states[0], own.times, method="lie", substeps=steps
            ).final  # fmt: skip

    def known(path: Trajectory) -> tuple[Known, ...]:
        end = path.final.detach()
        errors = [float((lie(steps) - end).norm()) for steps in FINE]
        passed = float((lie(1) - own.final).norm() / own.final.norm())
        rounding = 1e3 * depth * torch.finfo(own.final.dtype).eps
        return (
            Known(quantity="distance of Lie steps of one block from the forward pass",
                  predicted=0.0, computed=passed, tolerance=rounding),
            Known(quantity="order at which finer Lie steps approach this solution",
                  predicted=1.0, computed=math.log2(errors[0] / errors[1]), tolerance=0.15),
        )  # fmt: skip

    return System(
        name="trained",
        title=title,
        equation=equation,
        u0=own.states[0],
        times=tuple(i / 20 for i in range(20 * depth + 1)),
        known=known,
        parameters=parameters or {},
        build=trained if parameters else None,
    )


def _examples(tokens: int, count: int, draw: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draw sequences of `SYMBOLS`, and say whether token 1 is in it more often than token 0."""
    found = torch.randint(SYMBOLS, (count, tokens), generator=draw)
    more = (found == 1).sum(dim=1) > (found == 0).sum(dim=1)
    return found, more.long()


def _train(model: Classifier, tokens: int, updates: int) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    draw = generator(0, "trained", "data")
    with torch.enable_grad():
        for _ in range(updates):
            inputs, labels = _examples(tokens, BATCH, draw)
            loss = functional.cross_entropy(model(inputs), labels)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
