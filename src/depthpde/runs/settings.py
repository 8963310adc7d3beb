"""From a preset, a file and a person's own words to one RunConfig.

    preset  <  file  <  single settings            what comes later wins

A file is what ``depthpde train --print_config`` prints, a run's own ``config.json``, or any part
of either, as JSON, YAML or TOML.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from depthpde.data.lookup import find_task, is_source
from depthpde.data.tasks import TASKS
from depthpde.errors import check_name
from depthpde.files import read_plain
from depthpde.records.record import FORMAT
from depthpde.runs.defaults import defaults
from depthpde.runs.presets import PRESETS, preset
from depthpde.runs.run import RunConfig
from depthpde.training.config import shorten_warmup

NONE = "none"
"""The preset that leaves every setting at its own default."""
USUAL = ("mini", "nystrom-2021")
_PARTS = ("model", "training", "pretraining", "simulator")
_VALUES = (
    "task", "seed", "protocol", "recipe", "threads", "examples", "corruption", "windows",
    "shuffles", "transfer", "study", "source",
)  # fmt: skip
_AROUND = ("format", "config", "id", "label")


def build_run(
    task: str | None = None,
    *,
    preset_name: str | None = None,
    file: Path | None = None,
    settings: Mapping[str, Any] | None = None,
    changes: Sequence[str] = (),
) -> RunConfig:
    """Return the run that a preset, a file and single settings make together.

    >>> run = dp.build_run("listops-mini", settings={"model.dim": 64, "training.updates": 400})

    Args:
        task: The task's name; for a task of your own ``module:function`` or a folder of arrays.
            None takes that of the file.
        preset_name: Which preset; None is that of the file if it describes a whole run, else
            `usual_preset`.
        file: Settings on top of the preset.
        settings: Settings on top of that, by dotted name.
        changes: Settings on top of that, each written ``model.dim=64``.
    """
    given = {} if file is None else read_settings(file)
    name = _task(task, given, file)
    values: dict[str, Any] = {"task": name}
    if is_source(name):
        values |= {"task": find_task("", name).name, "source": name}
    elif given.get("source") is None:
        check_name("task", name, TASKS)
    whole = {"model", "training"} <= given.keys() and "recipe" in given
    if preset_name is not None or not whole:
        values |= _preset_values(preset_name, values["task"], values.get("source"))
    values = _over(values, given)
    for key, value in (settings or {}).items():
        values = _over(values, _nested(key, value))
    for change in changes:
        values = _over(values, _nested(*read_change(change)))
    changed = {read_change(change)[0] for change in changes}
    if "warmup" not in given.get("training", {}) and "training.warmup" not in changed:
        values = _over(values, {"training": shorten_warmup(values["training"])})
    try:
        return RunConfig.from_dict(values)
    except TypeError as error:
        raise ValueError(f"a setting must be of another type: {error}") from error


def describe(run: RunConfig) -> str:
    """Return a run's settings as JSON that `build_run` takes as a file."""
    return json.dumps({"format": FORMAT, "config": run.to_dict()}, indent=2)


def read_change(change: str) -> tuple[str, Any]:
    """Return the name and the value of ``model.dim=64``; a value is JSON, or else plain text."""
    name, equals, text = change.partition("=")
    if not equals or not name.strip():
        raise ValueError(
            f"a setting must be written NAME=VALUE, such as model.dim=64, got {change!r}"
        )
    try:
        return name.strip(), json.loads(text)
    except json.JSONDecodeError:
        return name.strip(), text
    except (RecursionError, ValueError) as error:  # nested too deeply, or a number without end
        raise ValueError(
            f"the value of {name.strip()!r} must be plain JSON, but {error}; write it shorter"
        ) from error


def read_settings(path: Path) -> dict[str, Any]:
    """Return the settings in a file, or raise with what is wrong with it."""
    given = _parse(path)
    if not isinstance(given, dict):
        raise ValueError(f"{path} must hold settings by name, got {type(given).__name__}")
    version = given.get("format", FORMAT)
    if version != FORMAT:
        raise ValueError(
            f"{path} must be of format {FORMAT}, got {version!r}: another version of depthpde "
            "wrote it; print it anew with --print_config"
        )
    inner = given.get("config", {key: each for key, each in given.items() if key not in _AROUND})
    if not isinstance(inner, dict):
        raise ValueError(f"{path} must hold settings under `config`, got {inner!r}")
    for key in inner:
        check_name(f"{path.name} key", key, (*_VALUES, *_PARTS))
    return _check_parts(inner)


def read_yaml(text: str) -> Any:
    """Return what a YAML text says; ImportError without PyYAML, ValueError where it is none.

    PyYAML takes 1e-3 for a word, because YAML 1.1 wants 1.0e-3; here it is a number, as in 1.2.
    """
    import yaml  # type: ignore[import-untyped]

    loader: Any = type("Loader", (yaml.SafeLoader,), {})
    number = re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+$")
    loader.add_implicit_resolver("tag:yaml.org,2002:float", number, list("-+0123456789"))
    try:
        return yaml.load(text, Loader=loader)
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from error


def _parse(path: Path) -> Any:
    try:
        text = read_plain(path).decode("utf-8")
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} does not exist; write it with --print_config") from None
    suffix = check_name("config's ending", path.suffix, _READERS)
    try:
        return _READERS[suffix](text)
    except ImportError as error:
        raise ValueError(
            f"{path} needs PyYAML to be read; use pip install pyyaml, or a .json file"
        ) from error
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} must be {suffix[1:].upper()}, but {error}") from error


_READERS: dict[str, Callable[[str], Any]] = {
    ".json": json.loads, ".yaml": read_yaml, ".yml": read_yaml, ".toml": tomllib.loads
}  # fmt: skip


def _task(task: str | None, given: Mapping[str, Any], file: Path | None) -> str:
    found = task or given.get("task")
    if found is None:
        raise ValueError("`task` must be named, such as listops-mini; see: depthpde data list")
    if task and given.get("task", task) != task:
        raise ValueError(
            f"`task` must be that of {file}, {given['task']!r}, got {task!r}; leave one of them out"
        )
    return str(found)


def usual_preset(task: str) -> str:
    """Return the preset that a task is run with where none is named.

    ``mini`` for a mini task; for a full one the Nyströmformer repository's, the smallest model that
    numbers were published for, else `NONE`: every setting at its own default.
    """
    return next((each for each in USUAL if task in PRESETS[each]), NONE)


def _preset_values(name: str | None, task: str, source: str | None) -> dict[str, Any]:
    if source is not None and name not in (None, NONE):
        raise ValueError(
            f"`preset` must be left out for a task of your own, got {name!r}; its settings follow "
            "from its sizes, and --set changes them"
        )
    if name is None and source is None:
        name = usual_preset(task)
    if name == NONE:
        return {"model": {}, "training": {}}
    found = defaults(find_task(task, source)) if source else preset(str(name), task)
    values = {"model": found.model.to_dict(), "training": found.training.to_dict()}
    if found.pretraining is not None:
        values["pretraining"] = found.pretraining.to_dict()
    return values


def _nested(name: str, value: Any) -> dict[str, Any]:
    """Return ``{"a": {"b": value}}`` for ``a.b``, its first word checked."""
    first, *rest = name.split(".")
    known = (*_VALUES, *(f"{part}.…" for part in _PARTS))
    if first not in (*_VALUES, *_PARTS):
        check_name("setting", name, known)
    for each in reversed(rest):
        value = {each: value}
    return _check_parts({first: value})


def _check_parts(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings whose model and training, which no run is without, are settings too."""
    for part in ("model", "training"):
        if not isinstance(given.get(part, {}), Mapping):
            raise ValueError(
                f"`{part}` must be a mapping of settings, got {given[part]!r}; name them, such as "
                f"{part}.NAME=VALUE, or leave it out"
            )
    return dict(given)


def _over(values: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with others on top.

    A layer's name stands for the layer of that kind; one of another kind replaces it whole.
    """
    found = dict(values)
    for key, value in given.items():
        old = found.get(key)
        if key == "layer" and isinstance(old, str):
            old = {"kind": old}
        found[key] = value
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            other = key == "layer" and "kind" in value
            found[key] = dict(value) if other else _over(old, value)
    return found
