"""Order: does the model see where a token is, what follows it, and what is only padding?

    two tokens change places      if no other site moves, positions are not seen; or two patches
    a token changes               if no site before it moves, an encoder is one-sided
    padding changes               if a real token moves, the mask does not hold

The stream after the blocks is compared (in a decoder, after the first one: later blocks see order
through the mask alone). A move too small to tell from rounding is computed again in float64.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from depthpde.doctor.activations import watching
from depthpde.doctor.model_map import ModelMap
from depthpde.doctor.not_measured import NotMeasured
from depthpde.insertion.calling import call_model
from depthpde.isolation.modes import in_float64, wide_weights, widen

CLEAR = 1e-4
"""A relative move in float32 that is no rounding."""
ROUNDING = 1e-5
"""A relative move in float32 that may be rounding."""
MOST_PARAMETERS = 5 * 10**7
"""Size up to which a model is run in float64."""


def order_facts(body: ModelMap, args: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    """Return what moves when tokens change places, and whether an encoder sees one side only.

    Args:
        body: The model.
        args: Its positional arguments.
        named: Its named arguments.
    """
    found = _tokens(args, named)
    if found is None:
        return {"positions": _patches(body, args, named)}
    key, tokens = found
    valid = _valid(args, named, key, tokens)
    real = torch.ones_like(tokens, dtype=torch.bool) if valid is None else valid
    row = int(real.sum(dim=1).argmax())
    k = _place(tokens[row], real[row])
    if k is None:
        return {"positions": NotMeasured("no two neighbouring tokens differ")}
    other = tokens.clone()
    other[row, k], other[row, k + 1] = tokens[row, k + 1], tokens[row, k]
    moved = _swap(body, args, named, key, (tokens, other), row, k, tokens.shape[1])
    facts: dict[str, Any] = {"positions": moved}
    if body.causal is False:
        facts["one_sided"] = _one_sided(body, args, named, key, tokens, row, k)
    facts["padding"] = _padding(body, args, named, key, tokens)
    return facts


def _padding(
    body: ModelMap, args: tuple[Any, ...], named: dict[str, Any], key: str | int, tokens: Tensor
) -> dict[str, Any] | NotMeasured:
    """Change the tokens of padding; return how far real tokens move, and from which block on."""
    valid = _valid(args, named, key, tokens)
    if valid is None or bool(valid.all()):
        return NotMeasured("the batch has no padding; pad a row to see what padding does")
    words = int(tokens.max())
    other = torch.where(valid, tokens, (tokens + 1 + tokens.shape[1] // 2) % (words + 1))
    fields = []
    for each in (tokens, other):
        given = {name: each if name == key else value for name, value in named.items()}
        with watching(body, inside=False) as activations:
            call_model(body.model, tuple(each if k == key else value
                                         for k, value in enumerate(args)), given)  # fmt: skip
        fields.append(activations.fields())
    for depth, (a, b) in enumerate(zip(*fields, strict=True)):
        if a.shape[:2] != valid.shape:
            return NotMeasured("the stream has other sites than the tokens")
        moved = float((a - b)[valid].abs().max() / a[valid].abs().max().clamp_min(1e-30))
        if moved > ROUNDING:
            where = f"block {depth}" if depth else "embedding"
            return {"size": moved, "where": where}
    return {"size": 0.0, "where": ""}


def _valid(
    args: tuple[Any, ...], named: dict[str, Any], key: str | int, tokens: Tensor
) -> Tensor | None:
    """Find the mask of real tokens among the arguments; None if there is none."""
    for name, value in (*enumerate(args), *named.items()):
        named_so = isinstance(name, int) or "mask" in str(name)
        if not named_so or not isinstance(value, Tensor) or value.shape != tokens.shape:
            continue
        if name == key:
            continue
        if value.dtype == torch.bool or bool(((value == 0) | (value == 1)).all()):
            padded = "padding" in str(name)  # key_padding_mask: True stands for padding
            return ~value.bool() if padded else value.bool()
    return None


def _patches(body: ModelMap, args: tuple[Any, ...], named: dict[str, Any]) -> float | NotMeasured:
    """Let two neighbouring patches of an image change places; return how far the others move."""
    given: list[tuple[str | int, Any]] = [*enumerate(args), *named.items()]
    images = ((key, u) for key, u in given if isinstance(u, Tensor) and u.ndim == 4)
    key, image = next(images, ("", None))
    convs = (each for each in body.model.modules() if isinstance(each, nn.Conv2d))
    cut = next((each.stride for each in convs if each.stride == each.kernel_size), None)
    if image is None or not image.is_floating_point() or cut is None:
        return NotMeasured("the input is neither a sequence of tokens nor an image in patches")
    high, wide = int(cut[0]), int(cut[1])
    rows, columns = image.shape[2] // high, image.shape[3] // wide
    if columns < 2 or rows * columns < 3:
        return NotMeasured("the image has too few patches")
    line, place = rows // 2, columns // 2 - 1
    down = slice(line * high, (line + 1) * high)
    left, right = (slice((place + k) * wide, (place + k + 1) * wide) for k in (0, 1))
    other = image.clone()
    other[0, :, down, left] = image[0, :, down, right]
    other[0, :, down, right] = image[0, :, down, left]
    k = line * columns + place
    return _swap(body, args, named, key, (image, other), 0, k, rows * columns)


def _swap(
    body: ModelMap, args: tuple[Any, ...], named: dict[str, Any], key: str | int,
    pair: tuple[Tensor, Tensor], row: int, k: int, sites: int,
) -> float | NotMeasured:  # fmt: skip
    """Return how far the sites but k and k + 1 move between two inputs, of `sites` each."""
    depth = 1 if body.causal else len(body.blocks)
    before, after = slice(0, k), slice(k + 2, None)

    def moved(weights: dict[str, Tensor] | None) -> float:
        calls = (_with(args, named, key, each, row) for each in pair)
        a, b = (_stream(body, *call, depth, weights) for call in calls)
        prefix = a.shape[0] - sites  # class tokens before the others
        if a.ndim != 2 or prefix < 0:
            return math.nan
        gap = (a - b)[prefix:]
        rest = torch.cat((gap[before], gap[after]))
        return float(rest.norm() / a.norm().clamp_min(1e-30)) if rest.numel() else 1.0

    value = moved(None)
    small = sum(each.numel() for each in body.model.parameters()) <= MOST_PARAMETERS
    if value < CLEAR and small:
        pair = widen(pair[0]), widen(pair[1])
        with in_float64():
            value = moved(wide_weights(body.model)())
    return NotMeasured("the stream has other sites than the input") if value != value else value


def _one_sided(
    body: ModelMap, args: tuple[Any, ...], named: dict[str, Any], key: str | int,
    tokens: Tensor, row: int, k: int,
) -> bool:  # fmt: skip
    other = tokens.clone()
    other[row, k + 1] = tokens[row, k]
    depth = len(body.blocks)
    a = _stream(body, *_with(args, named, key, tokens, row), depth, None)
    b = _stream(body, *_with(args, named, key, other, row), depth, None)
    prefix = max(a.shape[0] - tokens.shape[1], 0)
    return bool((a[prefix : prefix + k + 1] == b[prefix : prefix + k + 1]).all())


def _stream(
    body: ModelMap, args: tuple[Any, ...], named: dict[str, Any], depth: int,
    weights: dict[str, Tensor] | None,
) -> Tensor:  # fmt: skip
    with watching(body, inside=False) as activations:
        call_model(body.model, args, named, weights=weights)
    return activations.stream[depth][0]


def _with(
    args: tuple[Any, ...], named: dict[str, Any], key: str | int, tokens: Tensor, row: int
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Give the call of one row, with other tokens."""
    batch = tokens.shape[0]

    def one(name: str | int, value: Any) -> Any:
        if name == key:
            return tokens[row : row + 1]
        rows = isinstance(value, Tensor) and value.ndim > 0 and value.shape[0] == batch
        return value[row : row + 1] if rows else value

    return (
        tuple(one(k, each) for k, each in enumerate(args)),
        {name: one(name, each) for name, each in named.items() if name != "labels"},
    )


def _tokens(args: tuple[Any, ...], named: dict[str, Any]) -> tuple[str | int, Tensor] | None:
    given: list[tuple[str | int, Any]] = [*enumerate(args), *named.items()]
    for key, value in given:
        integer = isinstance(value, Tensor) and not value.is_floating_point()
        if integer and value.ndim == 2 and value.dtype != torch.bool and value.shape[1] > 3:
            return key, value
    return None


def _place(row: Tensor, real: Tensor) -> int | None:
    """Find two neighbouring real tokens near the middle that differ; None if there are none."""
    middle = max(1, int(real.sum()) // 3)
    both = real[:-1] & real[1:] & (row[:-1] != row[1:])
    places = [k for k in range(1, len(both)) if both[k]]
    return min(places, key=lambda k: abs(k - middle), default=None)
