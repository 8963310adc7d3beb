"""A person's own grid: a JSON or YAML file as a Plan.

name: width
question: Does the wider model need diffusion?
tasks: [listops-mini]
seeds: 6
model: {dim: 48}                          # for all variants, on top of the preset
variants:
  baseline: {}
  after embedding: {words: one step, model: {positions: [after_embedding]}}
  integrated: {run: {simulator: {method: strang}}}
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from depthpde.data.protocol import STRICT
from depthpde.errors import check_name
from depthpde.files import read_plain
from depthpde.records.protocols.protocol import StudyProtocol
from depthpde.runs.settings import read_yaml
from depthpde.sweeps.grid import Plan, Variant, bases
from depthpde.sweeps.study_tests import check_tests

FILES = (".json", ".yaml", ".yml")
KEYS = (
    "name", "question", "preset", "protocol", "tasks", "seeds", "baseline", "model", "training",
    "variants", "study",
)  # fmt: skip
VARIANT_KEYS = ("words", "model", "training", "run")


def read_plan(path: Path, *, seeds: int | None = None, tasks: Sequence[str] | None = None) -> Plan:
    """Return the plan that a file describes, or say what is wrong with it.

    >>> plan = dp.read_plan(Path("examples/decoder-controls.yaml"), seeds=2)

    Args:
        path: A ``.json``, ``.yaml`` or ``.yml`` file.
        seeds: How many, instead of what the file says.
        tasks: Which, instead of what the file says; not beside a protocol.
    """
    try:
        given = _mapping("the file", _read(path), KEYS)
        for key in ("tasks", "variants"):
            if key not in given and not (key == "tasks" and tasks):
                raise ValueError(f"`{key}` must be given; see depthpde sweep --help")
        variants = _mapping("variants", given["variants"])
        chosen = list(tasks or _list("tasks", given["tasks"]))
        changes = {key: _mapping(key, given.get(key, {})) for key in ("model", "training")}
        plan = Plan(
            name=str(given.get("name", path.stem)),
            question=str(given.get("question", "")),
            variants=[_variant(str(label), each) for label, each in variants.items()],
            bases=bases(str(given.get("preset", "mini")), chosen, **changes),
            seeds=_number_of_seeds(given, seeds),
            baseline=str(given.get("baseline", "")),
            protocol=str(given.get("protocol", STRICT)),
            file=str(path),
        )
        return plan if given.get("study") is None else _under_protocol(plan, given["study"], tasks)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _read(path: Path) -> Any:
    try:
        text = read_plain(path).decode("utf-8")
    except FileNotFoundError:
        raise ValueError("there is no such file; depthpde sweep --help shows one") from None
    if path.suffix == ".json":
        try:
            return json.loads(text)
        except RecursionError as error:
            raise ValueError(f"it must be JSON, but {error}") from error
    if path.suffix not in (".yaml", ".yml"):
        raise ValueError(f"a grid must be a .json, .yaml or .yml file, got {path.name!r}")
    try:
        return read_yaml(text)
    except ImportError as error:
        raise ValueError("YAML needs PyYAML: pip install pyyaml; or write it as .json") from error
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it must be YAML, but {error}") from error


def _under_protocol(plan: Plan, values: Any, tasks: Sequence[str] | None) -> Plan:
    """Return the plan with the protocol of its file; their name and question are the same."""
    if tasks:
        raise ValueError(
            f"`tasks` must be left out beside `study`, got {', '.join(tasks)}; a protocol is of "
            "all its tasks: the file says which"
        )
    given = {"name": plan.name, "question": plan.question} | _mapping("study", values)
    if given["name"] != plan.name:
        raise ValueError(f"`study.name` must be the grid's, {plan.name!r}, got {given['name']!r}")
    found = replace(plan, study=StudyProtocol.from_dict(given, "study"))
    check_tests(found)
    return found


def _number_of_seeds(given: Mapping[str, Any], seeds: int | None) -> int | list[int]:
    if "study" in given and "seeds" in given:
        raise ValueError(
            f"`seeds` must be left out beside `study`, got {given['seeds']!r}; its test_seeds and "
            "looks say which and when"
        )
    return seeds or _seeds(given.get("seeds", 6))


def _variant(label: str, values: Any) -> Variant:
    given = _mapping(f"variants.{label}", {} if values is None else values, VARIANT_KEYS)
    words = str(given.pop("words", ""))
    changes = {key: _mapping(f"{label}.{key}", each) for key, each in given.items()}
    return Variant(label, words, **changes)


def _mapping(name: str, value: Any, known: Sequence[str] = ()) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"`{name}` must be a mapping, got {value!r}")
    return {check_name(name, str(k), known) if known else str(k): v for k, v in value.items()}


def _list(name: str, value: Any) -> list[str]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ValueError(f"`{name}` must be a list, got {value!r}")
    return [str(each) for each in value]


def _seeds(value: Any) -> int | list[int]:
    whole = [value] if isinstance(value, int) else value
    if not isinstance(whole, list) or not all(type(each) is int and each >= 0 for each in whole):
        raise ValueError(f"`seeds` must be a whole number, or a list of such, got {value!r}")
    return value
