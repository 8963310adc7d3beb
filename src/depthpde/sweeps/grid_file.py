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
from pathlib import Path
from typing import Any

from depthpde.data.protocol import STRICT
from depthpde.errors import check_name
from depthpde.files import read_plain
from depthpde.records.escapes import LEARNED_AT_ONCE
from depthpde.records.protocols.endpoints import ENDPOINTS, ESCAPE, GATED
from depthpde.records.protocols.protocol import StudyProtocol
from depthpde.runs.settings import read_yaml
from depthpde.sweeps.grid import Plan, Variant, bases

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
        tasks: Which, instead of what the file says.
    """
    try:
        given = _mapping("the file", _read(path), KEYS)
        for key in ("tasks", "variants"):
            if key not in given and not (key == "tasks" and tasks):
                raise ValueError(f"`{key}` must be given; see depthpde sweep --help")
        variants = _mapping("variants", given["variants"])
        chosen = list(tasks or _list("tasks", given["tasks"]))
        changes = {key: _mapping(key, given.get(key, {})) for key in ("model", "training")}
        labels = [str(label) for label in variants]
        name, question = str(given.get("name", path.stem)), str(given.get("question", ""))
        return Plan(
            name=name,
            question=question,
            variants=[_variant(str(label), each) for label, each in variants.items()],
            bases=bases(str(given.get("preset", "mini")), chosen, **changes),
            seeds=_number_of_seeds(given, seeds),
            baseline=str(given.get("baseline", "")),
            protocol=str(given.get("protocol", STRICT)),
            study=_study(given.get("study"), name, question, labels, chosen),
            file=str(path),
        )
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


def _study(
    values: Any, name: str, question: str, labels: Sequence[str], tasks: Sequence[str]
) -> StudyProtocol | None:
    """Return the protocol of a file; its name and question are those of the grid.

    What it names must be there: a test of a variant that is none would be found after all runs.
    """
    if values is None:
        return None
    given = {"name": name, "question": question} | _mapping("study", values)
    if given["name"] != name:
        raise ValueError(f"`study.name` must be the grid's, {name!r}, got {given['name']!r}")
    found = StudyProtocol.from_dict(given)
    for endpoint in found.endpoints:
        check_name("study.endpoints", endpoint, ENDPOINTS)
    for gate in found.gates:
        check_name("study.gates.task", gate.task, tasks)
        check_name("study.gates.endpoint", gate.endpoint, GATED)
    for contrast in found.contrasts:
        for label in (contrast.variant, contrast.against, *(contrast.beyond or ())):
            check_name("study.contrasts", label, labels)
        if contrast.endpoint == ESCAPE and not LEARNED_AT_ONCE.keys() & set(tasks):
            raise ValueError(
                f"`study.contrasts` must not be of {ESCAPE!r} here, got {', '.join(tasks)}; only "
                f"{', '.join(sorted(LEARNED_AT_ONCE))} is learned at once or not yet"
            )
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
