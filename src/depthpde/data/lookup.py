"""find_task(name, source) → Task: one of ours by its name, or somebody's own by where it lies.

my_module:make_task      a function that returns a Task; every worker imports it itself
FOLDER with x.npy, y.npy arrays; x_test.npy, y_test.npy and x_validation.npy where they are fixed
FOLDER with manifest.json a prepared task, as `compare` writes it beside its results
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from depthpde.data.reader import read_manifest, read_split
from depthpde.data.task import SPLITS, Request, Task, TaskKind
from depthpde.data.tasks import TASKS
from depthpde.data.writer import MANIFEST, Writer
from depthpde.errors import check_name

_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


def find_task(name: str, source: str | None = None) -> Task:
    """Return a task by its name, or the one that somebody's own function or folder makes.

    Args:
        name: Its name; empty takes the name that the source gives it.
        source: ``module:function`` or a folder; None for the tasks of the package.
    """
    if source is None:
        return TASKS[check_name("task", name, TASKS)]
    made = _imported(source) if _FUNCTION.fullmatch(source) else _stored(source, _state(source))
    if made.name in TASKS:
        raise ValueError(
            f"`name` of your own task must not be one of ours, got {made.name!r} from {source}; "
            "rename it"
        )
    if name and made.name != name:
        raise ValueError(f"`task` from {source} must be called {name!r}, got {made.name!r}")
    return made


def is_source(word: str) -> bool:
    """Return whether a word names one's own task: ``module:function`` or a folder of arrays."""
    if word in TASKS:
        return False
    return bool(_FUNCTION.fullmatch(word)) or _state(word) != ()


def find_anywhere(source: str) -> str:
    """Return a source as a worker that starts in another folder finds it: folders by whole path."""
    return source if _FUNCTION.fullmatch(source) else str(Path(source).resolve())


@lru_cache(maxsize=32)
def _imported(source: str) -> Task:
    """Import ``module:function`` and call it; the folder one works in is searched first."""
    module, _, function = source.partition(":")
    sys.path.insert(0, os.getcwd())  # a command's own path begins with the folder of the command
    try:
        made = getattr(importlib.import_module(module), function)()
    except (ImportError, AttributeError) as error:
        raise ValueError(
            f"`task` {source} must be a function that can be imported, but {error}; run it where "
            "the module lies, or install the module"
        ) from error
    finally:
        sys.path.remove(os.getcwd())
    if not isinstance(made, Task):
        raise ValueError(
            f"`task` {source} must return a Task, got {type(made).__name__}; use "
            "dp.Task.from_arrays"
        )
    return made


def _state(source: str) -> tuple[tuple[str, int, int], ...]:
    """Return names, sizes and times of the files that make a task; nothing where there are none."""
    folder = Path(source)
    if not folder.is_dir():
        return ()
    found = [folder / MANIFEST] if (folder / MANIFEST).is_file() else sorted(folder.glob("?*.npy"))
    return tuple((each.name, each.stat().st_size, each.stat().st_mtime_ns) for each in found)


@lru_cache(maxsize=32)
def _stored(source: str, state: tuple[tuple[str, int, int], ...]) -> Task:
    folder = Path(source)
    if not state:
        raise FileNotFoundError(
            f"{source} holds no task; put x.npy and y.npy there, or name module:function"
        )
    return _prepared(folder) if state[0][0] == MANIFEST else _arrays(folder)


def _prepared(folder: Path) -> Task:
    manifest = read_manifest(folder)
    counted = "tokens" if manifest["kind"] == TaskKind.LANGUAGE else "examples"
    return Task(
        name=manifest["task"],
        title=str(manifest.get("title", "")),
        family=manifest["task"],
        kind=TaskKind(manifest["kind"]),
        length=manifest["length"],
        vocabulary=manifest["vocabulary"],
        classes=manifest["classes"],
        splits={name: each[counted] for name, each in manifest["splits"].items()},
        recipe=lambda task, request, writer: _copy(folder, request, writer),
        shift=manifest["shift"],
        grid=tuple(manifest["grid"]) if manifest.get("grid") else None,
        generator=manifest["generator"],
        channels=manifest.get("channels"),
    )


def _copy(folder: Path, request: Request, writer: Writer) -> None:
    writer.facts |= read_manifest(folder)["facts"]
    for name in SPLITS:
        split = read_split(folder, name)
        lengths = np.diff(split.offsets)
        channels = split.channels or 1
        writer.append(name, split.tokens.reshape(-1), lengths, split.labels, channels=channels)


def _arrays(folder: Path) -> Task:
    one = (folder / "x.npy").is_file()
    train = "" if one else "_train"
    fixed: dict[str, Any] = {
        split: (_load(folder, f"x_{split}"), _load(folder, f"y_{split}"))
        for split in ("test", "validation")
        if (folder / f"x_{split}.npy").is_file()
    }
    x, y = _load(folder, f"x{train}"), _load(folder, f"y{train}")
    name = re.sub(r"\W+", "-", folder.resolve().name).strip("-") or "mine"
    return Task.from_arrays(name, x, y, **fixed)


def _load(folder: Path, name: str) -> Any:
    path = folder / f"{name}.npy"
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} is missing; a task of arrays has x.npy and y.npy, or x_train.npy and "
            "y_train.npy, and the same for test where it is fixed"
        )
    try:
        return np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(
            f"{path} must be a plain array as numpy.save writes it, but {error}"
        ) from error
