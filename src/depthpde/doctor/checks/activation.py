"""Activation: which function stands between the matrices of a feed-forward.

    post = f(pre)            plain;        post = f(gate) · up    gated

The functions that feed-forwards use are tried first; then those that they do not: tanh, sigmoid,
none at all. Only what fits to a thousandth is named.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import permutations
from typing import Any

import torch
from torch import Tensor, nn
from torch.linalg import vector_norm
from torch.nn import functional as F

from depthpde.doctor.model_map import ModelMap, linear_weight
from depthpde.insertion.calling import call_model
from depthpde.insertion.recorder import Given, Recorder
from depthpde.layers.reaction import FeedForward

FIT = 1e-3
MOST = 4096
"""Numbers of a block that are compared."""
Function = Callable[[Tensor], Tensor]
USUAL: dict[str, Function] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu (tanh)": lambda x: F.gelu(x, approximate="tanh"),
    "quick gelu": lambda x: x * torch.sigmoid(1.702 * x),
    "silu": F.silu,
    "squared relu": lambda x: F.relu(x).square(),
}
UNUSUAL: dict[str, Function] = {"tanh": torch.tanh, "sigmoid": torch.sigmoid, "none": lambda x: x}
GATED_BY_DESIGN = ("sigmoid", "none")
"""What gated feed-forwards use too: GLU and bilinear ones."""


def activation_facts(
    body: ModelMap, args: tuple[Any, ...], named: dict[str, Any]
) -> dict[str, Any] | None:
    """Return the name of the function, whether it is unusual, and its block; None if not seen.

    Args:
        body: The model.
        args: Its positional arguments, a few rows of them.
        named: Its named arguments.
    """
    made: dict[int, list[Tensor]] = {}
    read: dict[int, Tensor] = {}
    with Recorder() as recorder:
        for k, block in enumerate(body.blocks):
            maps = _feed_forward(body, block.parts, k)
            if len(maps) not in (2, 3):
                continue  # several experts, or none that can be told
            for module in maps[:-1]:
                recorder.on_output(module, made.setdefault(k, []).append)
            recorder.on_call(maps[-1], partial(_keep, read, k))
        with torch.no_grad():
            call_model(body.model, args, named)
    known = [(k, _name(made.get(k, []), read[k])) for k in sorted(read)] or _of_our_own(body)
    for k, found in known:
        if found is not None and found[1]:
            return {"name": found[0], "unusual": True, "where": f"block {k + 1}"}
    named_ones = [found[0] for _, found in known if found is not None]
    return {"name": named_ones[0], "unusual": False, "where": ""} if named_ones else None


def _of_our_own(body: ModelMap) -> list[tuple[int, tuple[str, bool] | None]]:
    """Try the function that a feed-forward of our own holds: its maps are not called as modules."""
    found = []
    for k, block in enumerate(body.blocks):
        reaction = getattr(block.parts, "reaction", None)
        if isinstance(reaction, FeedForward):
            pre = torch.linspace(-3.0, 3.0, 61)
            found.append((k, _name([pre], reaction.activation(pre))))
    return found


def _keep(read: dict[int, Tensor], k: int, given: Given) -> None:
    read.setdefault(k, given.at(0))


def _feed_forward(body: ModelMap, block: nn.Module, k: int) -> list[nn.Module]:
    """List the linear maps of a block's feed-forward."""
    own = {each.data_ptr() for each in body.reaction_weights(k)}
    found = []
    for module in block.modules():
        weight = None if isinstance(module, nn.Sequential) else linear_weight(module)
        if weight is not None and weight.data_ptr() in own:
            found.append(module)
    return found


def _name(made: list[Tensor], post: Tensor) -> tuple[str, bool] | None:
    """Name the function that makes `post`, and tell whether it is unusual."""
    made = [each for each in made if isinstance(each, Tensor)]
    if len(made) == 1 and made[0].shape[-1] == 2 * post.shape[-1]:
        made = list(made[0].chunk(2, dim=-1))
    if not 1 <= len(made) <= 2 or any(each.numel() != post.numel() for each in made):
        return None
    few = [each.detach().double().flatten()[:MOST] for each in (*made, post)]
    *pre, after = few
    for unusual, functions in ((False, USUAL), (True, UNUSUAL)):
        for name, function in functions.items():
            pairs = permutations(pre) if len(pre) == 2 else [(pre[0], torch.ones_like(pre[0]))]
            if any(_fits(function(gate) * up, after) for gate, up in pairs):
                return name, unusual and not (len(pre) == 2 and name in GATED_BY_DESIGN)
    return None


def _fits(guess: Tensor, after: Tensor) -> bool:
    return bool(vector_norm(guess - after) <= FIT * vector_norm(after))
