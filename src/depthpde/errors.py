"""Checks at the door. Each message says what is wanted, what came, and what to do."""

from __future__ import annotations

import difflib
import shlex
import sys
from collections.abc import Iterable, Mapping
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import torch
    from torch import Tensor

Choice = TypeVar("Choice", bound=StrEnum)
Named = TypeVar("Named")
LARGEST_COUNT = 10**9
"""No count of anything here is larger; beyond it a typing error would run for years."""
NEAR = 0.6
"""How alike two names must be, from 0 to 1, for the one to be meant by the other."""


def check_positive(name: str, value: int) -> int:
    """Return a whole number of at least 1, or say what is wrong with it."""
    if isinstance(value, bool) or not isinstance(value, int):
        kind = type(value).__name__
        raise ValueError(f"`{name}` must be a whole number of at least 1, got {value!r} ({kind})")
    if value < 1:
        raise ValueError(f"`{name}` must be at least 1, got {value}")
    if value > LARGEST_COUNT:
        raise ValueError(f"`{name}` must be at most {LARGEST_COUNT:,}, got {value:.3g}; use less")
    return value


def check_whole(name: str, value: int) -> int:
    """Return a whole number of at least 0, or say what is wrong with it."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
        raise ValueError(f"`{name}` must be a whole number from 0 to 2⁶³ − 1, got {shown(value)}")
    return value


def check_range(name: str, value: float, low: float, high: float, *, advice: str = "") -> float:
    """Return a finite number in [low, high], or say what is wrong with it."""
    if not is_number(value):
        raise ValueError(f"`{name}` must be a finite number, got {shown(value)}")
    if not low <= value <= high:
        hint = f"; {advice}" if advice else ""
        raise ValueError(f"`{name}` must lie in [{low:g}, {high:g}], got {value:g}{hint}")
    return float(value)


def is_number(value: object) -> bool:
    """Tell whether something is a finite number; True and False are none.

    >>> is_number(0.25), is_number("0.25"), is_number(True), is_number(10**400)
    (True, False, False, False)
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= sys.float_info.max  # false for NaN, and no overflow for huge integers


def shown(value: object) -> str:
    """Show a value of any kind in a few words, with its type.

    >>> shown("a" * 100)
    "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa… (str)"
    """
    try:
        text = repr(value)
    except Exception:  # an object of anybody's, or an integer of more digits than Python prints
        text = "something that cannot be shown"
    return f"{text if len(text) <= 40 else text[:39] + '…'} ({type(value).__name__})"


def check_flag(name: str, value: bool) -> bool:
    """Return True or False, or say what is wrong with anything else."""
    if value is not True and value is not False:
        raise ValueError(f"`{name}` must be True or False, got {shown(value)}; use bool(...)")
    return value


def check_name(name: str, value: str, known: Iterable[str]) -> str:
    """Return a name out of a closed set, or list the set and the nearest member."""
    names = [str(each) for each in known]
    if isinstance(value, str) and value in names:
        return value
    near = nearest(value, names)
    hint = "" if near is None else f"; did you mean {near!r}?"
    got = repr(value) if isinstance(value, str) else shown(value)
    raise ValueError(f"`{name}` must be one of {', '.join(names)}, got {got}{hint}")


def check_identifier(name: str, value: str) -> str:
    """Return a name that may be part of another: letters, digits and underscores."""
    if isinstance(value, str) and value.isidentifier():
        return value
    raise ValueError(
        f"`{name}` must be letters, digits and underscores, got {value!r}; write it as 'first_try'"
    )


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


def import_optional(module: str, wanted_by: str, extra: str) -> ModuleType:
    """Return a library that people may do without, or say which extra brings it.

    >>> import_optional("json", "an example", "data").__name__
    'json'

    Args:
        module: What is imported.
        wanted_by: What needs it, in the user's words.
        extra: The extra of this package that brings it.
    """
    try:
        return import_module(module)
    except ImportError as error:
        name = module.partition(".")[0]
        raise ValueError(
            f"{wanted_by} needs {name}, got {error}; {install_advice(extra)}"
        ) from error


def install_advice(extra: str) -> str:
    """Return the command that brings an extra, as somebody of this environment would type it.

    >>> install_advice("hf")
    "install it with: pip install 'depthpde[hf]'"

    Args:
        extra: The extra of this package.
    """
    # uvx keeps the environment of one command in its cache, where nothing can be installed.
    if any(part.startswith(("archive-v", "environments-v")) for part in Path(sys.prefix).parts):
        return f"run it with: uvx --from 'depthpde[{extra}]' depthpde {shlex.join(sys.argv[1:])}"
    return f"install it with: pip install 'depthpde[{extra}]'"


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


def check_tensor(name: str, value: Tensor, like: Tensor | None = None) -> Tensor:
    """Return a dense tensor that holds numbers, or say what is wrong with it.

    Args:
        name: Of the argument.
        value: What was given for it.
        like: Another tensor, on whose device it must be.
    """
    import torch

    if not isinstance(value, torch.Tensor):
        raise ValueError(f"`{name}` must be a tensor, got {shown(value)}; use torch.as_tensor(...)")
    if value.layout is not torch.strided or value.is_quantized or value.is_nested:
        kind = "a quantized one" if value.is_quantized else f"layout {value.layout}"
        kind = "a nested one" if value.is_nested else kind
        raise ValueError(
            f"`{name}` must be a dense tensor, got {kind}; use .to_dense(), .dequantize() or a "
            "padded tensor"
        )
    if value.is_meta:
        raise ValueError(
            f"`{name}` must hold numbers, got a tensor on the meta device; "
            "load the weights or make the input on a real device"
        )
    if like is not None and value.device != like.device:
        raise ValueError(
            f"`{name}` must be on the device of the field, {like.device}, got {value.device}; "
            f"use .to({str(like.device)!r})"
        )
    return value


def check_module(name: str, model: object) -> None:
    """Refuse what is no module: a class, a function, a path."""
    from torch import nn

    if not isinstance(model, nn.Module):
        raise ValueError(
            f"`{name}` must be a torch.nn.Module, got {shown(model)}; build or load the model first"
        )


def check_field(name: str, u: Tensor, *, dim: int | None = None) -> Tensor:
    """Return a field [batch, length, dim] of real numbers, or say what is wrong with it."""
    check_tensor(name, u)
    if u.ndim != 3:
        raise ValueError(
            f"`{name}` must be a field [batch, length, dim], got {u.ndim} axes {list(u.shape)}; "
            "add or merge axes with unsqueeze or flatten"
        )
    if not u.is_floating_point():
        raise ValueError(f"`{name}` must hold floating-point numbers, got {u.dtype}; use .float()")
    if u.element_size() == 1:
        raise ValueError(f"`{name}` must have 16 bits or more a number, got {u.dtype}; use .half()")
    if u.shape[1] == 0:
        raise ValueError(f"`{name}` must have at least one site, got length 0 in {list(u.shape)}")
    if dim is not None and u.shape[2] != dim:
        raise ValueError(
            f"`{name}` must have {dim} features on its last axis, got {u.shape[2]} in "
            f"{list(u.shape)}; build the layer with dim={u.shape[2]} or transpose the field"
        )
    return u


def check_precision(name: str, u: Tensor, weight: Tensor) -> None:
    """Refuse a field in another precision than the weights it is multiplied with."""
    import torch

    if u.dtype != weight.dtype and not torch.is_autocast_enabled(u.device.type):
        raise ValueError(
            f"`{name}` must have the precision of the layer, {weight.dtype}, got {u.dtype}; "
            f"use .to({weight.dtype}), or layer.to({u.dtype})"
        )


def check_factory(device: torch.device | str | None, dtype: torch.dtype | None) -> None:
    """Refuse a device or a precision that no parameter can have."""
    import torch

    if dtype is not None:
        known = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
        if not isinstance(dtype, torch.dtype) or dtype not in known:
            names = ", ".join(str(each) for each in known)
            raise ValueError(f"`dtype` must be one of {names}, got {shown(dtype)}")
    if device is None or (isinstance(device, str) and device == "cpu"):
        return
    try:
        torch.empty(0, device=device)
    except (RuntimeError, TypeError, AssertionError, NotImplementedError) as error:
        reason = str(error).partition("\n")[0].partition(", ")[0]
        raise ValueError(
            f"`device` must be a device of this machine, got {shown(device)} ({reason}); use 'cpu'"
        ) from error


def check_grid(name: str, grid: tuple[int, int]) -> tuple[int, int]:
    """Return height and width of an image, or say what is wrong with them."""
    if not isinstance(grid, tuple | list) or len(grid) != 2:
        raise ValueError(
            f"`{name}` must be rows and columns, two whole numbers, got {shown(grid)}; use (4, 4)"
        )
    return check_positive(name, grid[0]), check_positive(name, grid[1])


def check_mask(name: str, mask: Tensor, u: Tensor) -> Tensor:
    """Return a boolean mask [batch, length] that fits the field, or say what is wrong with it."""
    import torch

    check_tensor(name, mask, u)
    if mask.dtype != torch.bool:
        raise ValueError(
            f"`{name}` must be boolean with True for real tokens, got {mask.dtype}; "
            "use mask.bool() (and ~mask if True meant padding)"
        )
    check_sites(name, mask, u)
    return mask


def check_sites(name: str, values: Tensor, u: Tensor) -> Tensor:
    """Return a tensor with one entry for each site of the field, or say what is wrong with it."""
    check_tensor(name, values, u)
    if tuple(values.shape) != tuple(u.shape[:2]):
        raise ValueError(
            f"`{name}` must have shape [batch, length] = {list(u.shape[:2])}, "
            f"got {list(values.shape)}"
        )
    return values
