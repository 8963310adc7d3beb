"""Checks at the door. Each message says what is wanted, what came, and what to do."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from torch import Tensor

Choice = TypeVar("Choice", bound=StrEnum)
Named = TypeVar("Named")
NEAR = 0.6
"""How alike two names must be, from 0 to 1, for the one to be meant by the other."""


def check_positive(name: str, value: int) -> int:
    """Return a whole number of at least 1, or say what is wrong with it."""
    if isinstance(value, bool) or not isinstance(value, int):
        kind = type(value).__name__
        raise ValueError(f"`{name}` must be a whole number of at least 1, got {value!r} ({kind})")
    if value < 1:
        raise ValueError(f"`{name}` must be at least 1, got {value}")
    return value


def check_range(name: str, value: float, low: float, high: float, *, advice: str = "") -> float:
    """Return a finite number in [low, high], or say what is wrong with it."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"`{name}` must be a finite number, got {value!r}")
    if not low <= value <= high:
        hint = f"; {advice}" if advice else ""
        raise ValueError(f"`{name}` must lie in [{low:g}, {high:g}], got {value:g}{hint}")
    return float(value)


def check_name(name: str, value: str, known: Iterable[str]) -> str:
    """Return a name out of a closed set, or list the set and the nearest member."""
    names = [str(each) for each in known]
    if value in names:
        return value
    near = nearest(value, names)
    hint = "" if near is None else f"; did you mean {near!r}?"
    raise ValueError(f"`{name}` must be one of {', '.join(names)}, got {value!r}{hint}")


class UnknownNameError(KeyError):
    """A name that a table does not hold; KeyError alone would print its message in quotes."""

    def __str__(self) -> str:
        return str(self.args[0])


class NameTable(dict[str, Named]):
    """A table of named things that names the nearest one where a name is missing.

    >>> NameTable("task", {"listops": 1, "text": 2})["listop"]
    Traceback (most recent call last):
    depthpde.errors.UnknownNameError: `task` must be one of listops, text, got 'listop'; did …
    """

    def __init__(self, kind: str, things: Mapping[str, Named]) -> None:
        super().__init__(things)
        self.kind = kind

    def __missing__(self, name: str) -> Named:
        try:
            check_name(self.kind, name, self)
        except ValueError as error:
            raise UnknownNameError(str(error)) from None
        raise AssertionError("a missing name is not in the table")


def import_optional(module: str, wanted_by: str) -> ModuleType:
    """Return a library that people may do without, or say how to get it.

    >>> import_optional("json", "an example").__name__
    'json'
    """
    try:
        return import_module(module)
    except ImportError as error:
        name = module.partition(".")[0]
        raise ValueError(
            f"{wanted_by} needs {name}, got {error}; install it with: pip install {name}"
        ) from error


def nearest(value: str, names: Iterable[str]) -> str | None:
    """Return the name that was most likely meant; None where none is near."""
    near = difflib.get_close_matches(str(value), list(names), n=1, cutoff=NEAR)
    return near[0] if near else None


def check_one_of(name: str, value: str | Choice, choices: type[Choice]) -> Choice:
    """Return the member of an enumeration that a member or its name stands for."""
    if isinstance(value, choices):
        return value
    return choices(check_name(name, str(value), choices))


def check_folder(name: str, folder: Path) -> Path:
    """Return a folder that can be written, or say what is wrong with it; nothing is made."""
    from tempfile import TemporaryFile

    try:
        there = next(each for each in (folder, *folder.parents) if each.exists())
        with TemporaryFile(dir=there):
            return folder
    except OSError as error:
        raise OSError(
            f"`{name}` must be a folder that can be written, got {folder} ({error.strerror}); "
            "choose another"
        ) from error


def check_field(name: str, u: Tensor, *, dim: int | None = None) -> Tensor:
    """Return a field [batch, length, dim] of real numbers, or say what is wrong with it."""
    if u.ndim != 3:
        raise ValueError(
            f"`{name}` must be a field [batch, length, dim], got {u.ndim} axes {list(u.shape)}; "
            "add or merge axes with unsqueeze or flatten"
        )
    if not u.is_floating_point():
        raise ValueError(f"`{name}` must hold floating-point numbers, got {u.dtype}; use .float()")
    if u.shape[1] == 0:
        raise ValueError(f"`{name}` must have at least one site, got length 0 in {list(u.shape)}")
    if dim is not None and u.shape[2] != dim:
        raise ValueError(
            f"`{name}` must have {dim} features on its last axis, got {u.shape[2]} in "
            f"{list(u.shape)}; build the layer with dim={u.shape[2]} or transpose the field"
        )
    return u


def check_mask(name: str, mask: Tensor, u: Tensor) -> Tensor:
    """Return a boolean mask [batch, length] that fits the field, or say what is wrong with it."""
    import torch

    if mask.dtype != torch.bool:
        raise ValueError(
            f"`{name}` must be boolean with True for real tokens, got {mask.dtype}; "
            "use mask.bool() (and ~mask if True meant padding)"
        )
    check_sites(name, mask, u)
    return mask


def check_sites(name: str, values: Tensor, u: Tensor) -> Tensor:
    """Return a tensor with one entry for each site of the field, or say what is wrong with it."""
    if tuple(values.shape) != tuple(u.shape[:2]):
        raise ValueError(
            f"`{name}` must have shape [batch, length] = {list(u.shape[:2])}, "
            f"got {list(values.shape)}"
        )
    return values
