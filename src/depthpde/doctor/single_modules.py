"""What single modules show: norms, units, and the first that is not finite."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from torch import Tensor, nn

from depthpde.doctor.depth_profile import DepthSeries
from depthpde.doctor.model_map import ModelMap, linear_weight
from depthpde.insertion.calling import call_model
from depthpde.insertion.family import has
from depthpde.insertion.recorder import Given, Recorder

EPSILONS = ("eps", "variance_epsilon", "epsilon")


class ModuleWatch:
    """What single modules show while a model runs: norms and units.

    Args:
        body: The model.
        recorder: Takes the hooks.
    """

    def __init__(self, body: ModelMap, recorder: Recorder) -> None:
        self.norms: dict[str, tuple[float, float]] = {}
        """Of each norm, by name: the share of ε in what it divides by, and ε."""
        self.silent: list[str] = []
        """Norms that give every token the same."""
        self.dead: dict[str, float] = {}
        """Of each block: the share of the feed-forward's units that are zero for every token."""
        self.failed = ""
        """Why a module could not be looked at, where one could not."""
        inner = _inside_terms(body)
        for name, module in body.model.named_modules():
            epsilon = None if id(module) in inner else _epsilon(module)
            if epsilon is not None:
                note = partial(_note_norm, self.norms, self.silent, name, epsilon)
                recorder.on_return(module, partial(self._try, note))
        for k, block in enumerate(body.blocks, start=1):
            for name, module in _narrowing(block.parts):
                if not name.startswith(("placed", "cross")):
                    note_units = partial(_note_units, self.dead, f"block {k}")
                    recorder.on_call(module, partial(self._try, note_units))

    def _try(self, note: Callable[..., None], *seen: Any) -> None:
        try:
            note(*seen)
        except Exception as error:  # no module that nobody thought of ends a diagnosis
            self.failed = next(iter(str(error).splitlines()), type(error).__name__)

    def facts(self) -> dict[str, Any]:
        """Return what the norms show."""
        norms = [(name, *each) for name, each in self.norms.items()]
        return {"norms": norms, "silent_norms": self.silent}

    def series(self) -> dict[str, DepthSeries]:
        """Return the dead units by block; nothing where no block shows its units."""
        words = "share of the feed-forward's units that are zero for every token"
        labels, values = tuple(self.dead), tuple(self.dead.values())
        found = {"units.dead": DepthSeries("units.dead", words, labels, values)}
        return found if self.dead else {}


def first_not_finite(
    body: ModelMap, args: tuple[Any, ...], named: dict[str, Any]
) -> dict[str, Any] | None:
    """Run the model once more and return the first module that gives what is no number.

    Args:
        body: The model.
        args: Its positional arguments.
        named: Its named arguments.
    """
    first: list[dict[str, Any]] = []
    with Recorder() as recorder:
        for name, module in body.model.named_modules():
            if name:
                recorder.on_return(module, partial(_note_first, first, name, module))
        call_model(body.model, args, named)
    return first[0] if first else None


def _inside_terms(body: ModelMap) -> set[int]:
    """Find the norms of blocks that do not read the stream: what they read may be small."""
    on_stream = {
        id(block.parts.get_submodule(path))
        for block in body.blocks
        for path in body.family.norms
        if has(block.parts, path)
    }
    inside = {id(each) for block in body.blocks for each in block.parts.modules()}
    return inside - on_stream


def _epsilon(module: nn.Module) -> float | None:
    if "norm" not in type(module).__name__.lower():
        return None
    found = (getattr(module, name, None) for name in EPSILONS)
    return next((each for each in found if isinstance(each, float)), None)


def _note_norm(
    norms: dict[str, tuple[float, float]], silent: list[str], name: str, epsilon: float,
    given: Given, out: Any,
) -> None:  # fmt: skip
    u = given.at(0)
    if not isinstance(u, Tensor) or u.ndim < 2 or name in norms:
        return
    spread = u.detach().float().var(dim=-1, correction=0)
    if not bool(spread.isfinite().all()):
        return  # what came in is at fault, not ε
    middle = float(spread[spread > 0].median()) if bool((spread > 0).any()) else 0.0
    norms[name] = (epsilon / (epsilon + middle) if epsilon + middle > 0 else 0.0, epsilon)
    if isinstance(out, Tensor) and middle > 0:
        rows = out.detach().flatten(0, -2)
        if len(rows) > 1 and bool((rows == rows[:1]).all()):
            silent.append(name)


def _note_units(dead: dict[str, float], label: str, given: Given) -> None:
    u = given.at(0)
    if isinstance(u, Tensor) and u.ndim >= 2:
        silent = float((u.detach().flatten(0, -2) == 0).all(dim=0).float().mean())
        dead[label] = max(silent, dead.get(label, 0.0))


def _note_first(
    first: list[dict[str, Any]], name: str, module: nn.Module, given: Given, out: Any
) -> None:
    u = out[0] if isinstance(out, tuple | list) and out else out
    if first or not isinstance(u, Tensor) or bool(u.isfinite().all()):
        return
    came = [each for each in (*given.args, *given.named.values()) if isinstance(each, Tensor)]
    floats = [each for each in came if each.is_floating_point()]
    largest = max((float(each.abs().max()) for each in floats), default=0.0)
    first.append({"module": name, "kind": type(module).__name__, "input": largest})


def _narrowing(block: nn.Module) -> list[tuple[str, nn.Module]]:
    """List the linear maps of a block that read more features than they give."""
    found = []
    for name, module in block.named_modules():
        weight = linear_weight(module) if not isinstance(module, nn.Sequential) else None
        if weight is not None and weight.shape[1] > weight.shape[0] and weight.shape[0] > 1:
            found.append((name, module))
    return found
