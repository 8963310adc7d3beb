"""Departure: where a model and a healthy reference part, code and weights told apart.

    code       model(x; w_ref) against reference(x; w_ref)      one difference is one too many
    weights    rms(w − w_ref) of every row and column, against the median of all weights

Called with the reference's weights, two models of the same code give the same numbers. The
first module whose inputs agree and whose output does not is where the code departs. Where none
does, two runs in train mode show which module varies more, or less, than the reference's.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor, nn

from depthpde.doctor.checks.attention_change import explain_attention
from depthpde.doctor.checks.components import component_of, component_of_weight
from depthpde.doctor.model_map import ModelMap, model_map
from depthpde.doctor.not_measured import NotMeasured
from depthpde.insertion.calling import call_model
from depthpde.insertion.recorder import argument_names
from depthpde.isolation.trace import ModuleCall, tracing

ROUNDING = 1e-5
"""Relative difference of float32 that other kernels make."""
NOISIER = 1.25
"""Times the reference's variation in train mode from which on a module has another dropout."""
FLOOR = 1e-6
"""Least move of a weight, against its size, that counts."""


def compare(
    body: ModelMap, reference: nn.Module, args: tuple[Any, ...], named: dict[str, Any]
) -> dict[str, Any]:
    """Return where code and weights depart: size, module, component and a sentence for each.

    Args:
        body: The model.
        reference: A healthy model of the same modules.
        args: What both are called with.
        named: And what by name.
    """
    found = _other_parts(body, reference)
    if found is not None:
        return {"code": found, "weights": NotMeasured("the two models have other weights")}
    return {
        "code": code_departure(body, reference, args, named),
        "weights": _weights(body, reference),
    }


def _other_parts(body: ModelMap, reference: nn.Module) -> dict[str, Any] | None:
    """Find weights that only one of the two has, that have another shape, or that cannot learn."""
    ours, theirs = (dict(each.named_parameters()) for each in (body.model, reference))
    for name in dict.fromkeys((*theirs, *ours)):
        path = name.rpartition(".")[0]
        known = path in dict(body.model.named_modules())
        component = component_of_weight(body, name) if known else ""
        if name not in ours:
            return departure(1.0, path, component, f"{name} is no parameter of the model any more")
        if name not in theirs:
            return departure(1.0, path, component, f"{name} is no parameter of the reference")
        if ours[name].shape != theirs[name].shape:
            shapes = f"{list(ours[name].shape)} against {list(theirs[name].shape)}"
            return departure(1.0, path, component, f"{name} has another shape: {shapes}")
        if ours[name].requires_grad is not theirs[name].requires_grad:
            word = "learns" if ours[name].requires_grad else "does not learn any more"
            return departure(1.0, path, component, f"{name} {word}")
    return None


def code_departure(
    body: ModelMap, reference: nn.Module, args: tuple[Any, ...], named: dict[str, Any]
) -> dict[str, Any]:
    """Return where the code departs, both models called with the reference's weights.

    Args:
        body: The model.
        reference: A model of the same weights.
        args: What both are called with.
        named: And what by name.
    """
    calls = [_run(each, reference, args, named) for each in (body.model, reference)]
    failed = [each for each in calls if isinstance(each, NotMeasured)]
    if failed:
        return departure(
            1.0, "", "output", f"it cannot be called as the reference: {failed[0].reason}"
        )
    ours, theirs = calls
    assert isinstance(ours, ModuleCall)
    assert isinstance(theirs, ModuleCall)
    found = _first_departure(ours, theirs)
    if found is None:
        return _noise(body, reference, args, named) or departure(0.0, "", "", "")
    where, size = found
    component, why = component_of(body, where.name), ""
    if component in ("score", "q, k, v"):
        batch = dict(zip(argument_names(reference), args, strict=False)) | named
        with suppress(Exception):  # an explanation is a help; without one the place still stands
            why, component = explain_attention(
                body, model_map(reference, batch=batch), args, named, where.name, component
            )
    settings = [each for each in _settings(body.model, reference) if _near(each, where.name)]
    why = why or next(iter(settings), "")
    text = f"{where.name or 'the model itself'} ({where.kind}) gives something else"
    return departure(size, where.name, component, f"{text}{f': {why}' * bool(why)}")


def _noise(
    body: ModelMap, reference: nn.Module, args: tuple[Any, ...], named: dict[str, Any]
) -> dict[str, Any] | None:
    """Find the first module whose random numbers in train mode are more, or fewer."""
    with suppress(ValueError, AssertionError):
        ours, theirs = ([_run(each, reference, args, named, seed=seed) for seed in (0, 1)]
                        for each in (body.model, reference))  # fmt: skip
        levels = {}
        for key, pair in (("ours", ours), ("theirs", theirs)):
            assert all(isinstance(each, ModuleCall) for each in pair)
            levels[key] = dict(_levels(*pair))  # type: ignore[arg-type]
        for name, (level, kind) in levels["ours"].items():
            usual, _ = levels["theirs"].get(name, (level, kind))
            more = level > NOISIER * usual + ROUNDING or usual > NOISIER * level + ROUNDING
            if more:
                component = component_of(body, name)
                text = f"{name} ({kind}) varies by {level:.2g} in train mode, there by {usual:.2g}"
                size = abs(level - usual)
                return departure(size, name, component, f"{text}: another dropout, or noise")
    return None


def _levels(first: ModuleCall, second: ModuleCall) -> Iterator[tuple[str, tuple[float, str]]]:
    """Give how far two runs with other random numbers are apart, innermost modules first."""
    others = {(each.name, each.number): each for each in second.children}
    for child in first.children:
        other = others.get((child.name, child.number))
        if other is not None:
            yield from _levels(child, other)
            if child.outputs:
                yield child.name, (_apart(child.outputs[:1], other.outputs[:1]), child.kind)


def _near(setting: str, module: str) -> bool:
    return bool(module) and setting.split(" ")[0].startswith(module)


def _run(
    model: nn.Module, reference: nn.Module, args: tuple[Any, ...], named: dict[str, Any], *,
    seed: int | None = None,
) -> ModuleCall | NotMeasured:  # fmt: skip
    """Trace one call with the reference's weights and the model's own code; or say why not.

    Args:
        model: Whose code runs.
        reference: Whose weights it runs with.
        args: The call.
        named: And what by name.
        seed: Of the random numbers of train mode; eval mode if there is none.
    """
    weights: dict[str, Tensor] = {
        name: nn.Parameter(each.detach(), requires_grad=False)
        for name, each in reference.named_parameters()
    }
    weights |= {name: each.detach().clone() for name, each in model.named_buffers()}
    modes = [(each, each.training) for each in model.modules()]
    model.train(seed is not None)
    try:
        with torch.random.fork_rng(devices=[]), torch.no_grad(), tracing(model) as tracer:
            torch.manual_seed(seed or 0)
            call_model(model, args, named, weights=weights)
    except ValueError as error:
        return NotMeasured(str(error).split(" from its forward: ")[-1].split(";")[0])
    finally:
        for each, mode in modes:
            each.training = mode
    assert tracer.root is not None, "the model was called"
    return tracer.root


def _first_departure(ours: ModuleCall, theirs: ModuleCall) -> tuple[ModuleCall, float] | None:
    """Find the innermost call whose inputs agree and whose outputs do not, and by how much."""
    others = {(each.name, each.number): each for each in theirs.children}
    for child in ours.children:
        other = others.get((child.name, child.number))
        if other is None:
            return child, 1.0
        came = _apart(child.inputs, other.inputs)
        if came > ROUNDING:
            return ours, came  # it was changed between two modules: by this one's own code
        found = _first_departure(child, other)
        if found is not None:
            return found
    size = _apart(ours.outputs, theirs.outputs)
    return (ours, size) if size > ROUNDING else None


def _apart(ours: list[Tensor], theirs: list[Tensor]) -> float:
    """Measure the largest relative difference of two lists of tensors."""
    if len(ours) != len(theirs):
        return 1.0
    worst = 0.0
    for a, b in zip(ours, theirs, strict=True):
        if a.shape != b.shape:
            return 1.0
        x, y = a.double(), b.double()
        same = (x == y) | (x.isnan() & y.isnan())
        gap = torch.where(same, 0.0, x - y).nan_to_num(nan=1e30, posinf=1e30, neginf=1e30)
        size = torch.where(y.abs() < 1e30, y, 0.0).nan_to_num()
        worst = max(worst, float(gap.norm() / size.norm().clamp_min(1e-30)))
    return min(worst, 1e6)


def _settings(model: nn.Module, reference: nn.Module) -> list[str]:
    """List plain attributes that differ, as sentences that begin with the module's name."""
    others = dict(reference.named_modules())
    found = []
    for path, module in model.named_modules():
        theirs = vars(others[path]) if path in others else {}
        for name, value in vars(module).items():
            plain = isinstance(value, bool | int | float | str) and not name.startswith("_")
            if plain and name != "training" and name in theirs and theirs[name] != value:
                found.append(f"{path} has {name} = {value}, the reference {theirs[name]}")
    return found


def _weights(body: ModelMap, reference: nn.Module) -> dict[str, Any]:
    theirs = dict(reference.named_parameters())
    moves = {
        name: (weight.detach() - theirs[name].detach()).float()
        for name, weight in body.model.named_parameters()
        if weight.is_floating_point()
    }
    if not moves:
        return departure(0.0, "", "", "")
    rms = {name: float(each.square().mean().sqrt()) for name, each in moves.items()}
    typical = torch.tensor(list(rms.values())).median().item()
    worst, size, what = "", 0.0, ""
    for name, each in moves.items():
        base = float(theirs[name].detach().float().square().mean().sqrt())
        usual = max(typical, FLOOR * max(base, 1e-3))
        for words, value in _parts(each):
            if value / usual > size:
                worst, size, what = name, value / usual, words
    path = worst.rpartition(".")[0]
    if size == 0.0:
        return departure(0.0, "", "", "")
    text = f"{what} {worst} moved {size:.2g} × as far as weights usually did"
    return departure(size, path, component_of_weight(body, worst), text)


def _parts(move: Tensor) -> Iterator[tuple[str, float]]:
    """Give the moves of a whole weight, of its rows and of its columns: words and rms."""
    yield "the weight", float(move.square().mean().sqrt())
    if move.ndim == 2:
        for words, axis in (("a row of", 1), ("a column of", 0)):
            yield words, float(move.square().mean(dim=axis).amax().sqrt())


def departure(size: float, module: str, component: str, text: str) -> dict[str, Any]:
    """Give a departure as plain values: how far, which module, whose part, and a sentence."""
    return {"size": size, "module": module, "component": component, "text": text}
