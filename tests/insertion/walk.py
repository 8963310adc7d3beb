"""Walk every position × route × layer of one family and list what does not hold."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from depthpde.insertion.build import INSERTABLE
from depthpde.insertion.hooks.container import PREFIX
from depthpde.insertion.insert import insert
from depthpde.layers.controls import Blur, ExponentialAverage
from depthpde.models.position import ROUTES, Position, Route
from insertion.zoo import Animal, padding

RATIO = 0.12
FIXED = {"blur": Blur, "exponential_average": ExponentialAverage}
"""Controls that cannot start as the identity: inserted as functions."""


LAYERS = (*INSERTABLE, *FIXED)


def walk(animal: Animal, turn: int | None = None) -> list[str]:
    """Return a line for every claim that fails; none if all is well.

    Args:
        animal: The family's model.
        turn: Only diffusion and one other layer at each place; which one changes with the place
            and with this number, so that several families try all of them. None tries every layer.
    """
    model = animal.build()
    original = {key: value.clone() for key, value in model.state_dict().items()}
    plain = animal.call(model, animal.feed(), None)
    wrong, rest = [], [each for each in LAYERS if each != "diffusion"]
    for position, routes in ROUTES.items():
        if position.value in animal.without:
            continue
        for route in routes:
            some = LAYERS
            if turn is not None:
                some, turn = ("diffusion", rest[turn % len(rest)]), turn + 1
            for layer in some:
                found = _examine(animal, model, plain, original, position, route, layer)
                wrong += [f"{position.value} {route.value} {layer}: {each}" for each in found]
    return wrong


def _examine(
    animal: Animal,
    model: nn.Module,
    plain: Tensor,
    original: dict[str, Tensor],
    position: Position,
    route: Route,
    layer: str,
) -> list[str]:
    wrong = []
    if layer in FIXED:
        inserted = insert(model, position, route=route, layer=FIXED[layer])
    else:
        inserted = insert(model, position, route=route, layer=layer)
        distance = (animal.call(model, animal.feed(), None) - plain).abs().max().item()
        if distance > animal.tolerance:
            wrong.append(f"not the identity at insertion: {distance:.1e}")
        inserted.remove()
        inserted = insert(model, position, route=route, layer=layer, initial_ratio=RATIO)
    changed = animal.call(model, animal.feed(), None)
    if (changed - plain).abs().max() < 1e-3:
        wrong.append("acts on nothing")
    if {key for key in model.state_dict() if not key.startswith(PREFIX)} != set(original):
        wrong.append("the model's own keys changed")
    wrong += _look_for_leaks(animal, model, changed)
    inserted.remove()
    if not torch.equal(animal.call(model, animal.feed(), None), plain):
        wrong.append("not restored by remove()")
    model.load_state_dict(original, strict=True)
    return wrong


def _look_for_leaks(animal: Animal, model: nn.Module, plain: Tensor) -> list[str]:
    wrong = []
    given = animal.feed()
    if animal.pads:
        valid = padding(left=animal.causal)
        before = animal.call(model, given, valid)
        after = animal.call(model, _other(given, ~valid), valid)
        distance = (after - before)[valid].abs().max().item()
        if not distance <= 1e-5:
            wrong.append(f"padding leaks: {distance:.1e}")
    if animal.causal:
        future = torch.arange(given.shape[1]) >= 4
        after = animal.call(model, _other(given, future.expand(given.shape[:2])), None)
        distance = (after - plain)[:, :4].abs().max().item()
        if not distance <= 1e-5:
            wrong.append(f"the future leaks: {distance:.1e}")
    return wrong


def _other(given: Tensor, where: Tensor) -> Tensor:
    """Change what stands at some sites."""
    if given.is_floating_point():
        return torch.where(where[..., None], given.flip(0) + 1, given)
    return torch.where(where, given % 13 + 3, given)
