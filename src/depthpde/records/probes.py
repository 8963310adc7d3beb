"""What was measured on finished models: ``probe.json`` of the runs that have one.

    {"depth": {"drift.cosine": [one number a depth], …},
     "transfer": {PLACE: {"omega": […], "gain": […]}},
     "bands": {PLACE: {"before": [four numbers], "after": [four numbers]}}}

Every part is optional; what has another form is left out. A file that cannot be read is reported.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from depthpde.files import parse_json
from depthpde.records.learning_curves import LearningCurve, join
from depthpde.records.record import Broken, Reading, Record
from depthpde.records.run_model import site_of

PROBE = "probe.json"
WORDS = {
    "drift.cosine": "cosine to the input",
    "rank.residual": "distance from rank one",
    "attention.entropy": "attention entropy",
    "lyapunov.largest": "largest Lyapunov exponent",
    "energy.dirichlet": "Dirichlet energy",
    "gradient.stream": "gradient of the stream",
}
"""The measures that are shown first, in this order; others follow by name."""


def depth_curves(records: Sequence[Record]) -> dict[str, LearningCurve]:
    """Join each measure by depth over runs: measure → mean, worst and best."""
    found: dict[str, list[list[Any]]] = {}
    for record in records:
        for name, values in _mapping(read_probe(record).value.get("depth")).items():
            if isinstance(values, list) and values:
                found.setdefault(str(name), []).append(values)
    joined = {name: _joined(runs) for name, runs in found.items()}
    known = {name: each for name, each in joined.items() if each.updates}
    order = list(WORDS)
    rank = {name: order.index(name) if name in order else len(order) for name in known}
    return {name: known[name] for name in sorted(known, key=lambda name: (rank[name], name))}


def measured_transfer(records: Sequence[Record]) -> dict[str, tuple[list[float], list[float]]]:
    """Return place → frequencies and the mean gain over runs, where all ask the same ones."""
    found: dict[str, list[tuple[list[float], list[float]]]] = {}
    for record in records:
        for place, values in _mapping(read_probe(record).value.get("transfer")).items():
            omega, gain = (_numbers(_mapping(values).get(key)) for key in ("omega", "gain"))
            if omega and len(omega) == len(gain):
                found.setdefault(_words(place), []).append((omega, gain))
    return {
        place: (runs[0][0], _mean([gain for _, gain in runs]))
        for place, runs in found.items()
        if all(omega == runs[0][0] for omega, _ in runs)
    }


def measured_bands(records: Sequence[Record]) -> dict[str, dict[str, list[float]]]:
    """Return place → before and after → mean energy in each of four bands."""
    found: dict[str, dict[str, list[list[Any]]]] = {}
    for record in records:
        for place, measured in _mapping(read_probe(record).value.get("bands")).items():
            for when, values in _mapping(measured).items():
                if isinstance(values, list) and len(values) == 4:
                    found.setdefault(_words(place), {}).setdefault(str(when), []).append(values)
    means = {
        place: {when: _mean_of_known(runs) for when, runs in sorted(measured.items(), reverse=True)}
        for place, measured in found.items()
    }
    known = {place: {w: each for w, each in m.items() if each} for place, m in means.items()}
    return {place: measured for place, measured in known.items() if measured}


def read_probe(record: Record) -> Reading[Mapping[str, Any]]:
    """Return what a run's probe says, parsed once; nothing where it has none."""
    return record.keep(PROBE, lambda: parse_probe(record))


def parse_probe(
    record: Record, texts: dict[str, bytes] | None = None
) -> Reading[Mapping[str, Any]]:
    """Read what a run's probe says from its file; `texts` takes up a file that is one."""
    path = record.folder / PROBE
    try:
        content = record.content(PROBE)
        values = parse_json(content)
    except FileNotFoundError:
        return Reading({})
    except (OSError, ValueError, RecursionError) as error:
        return Reading({}, Broken(path, f"a probe must be JSON, but {error}"))
    if not isinstance(values, Mapping):
        return Reading({}, Broken(path, f"a probe must be an object, got {type(values).__name__}"))
    if texts is not None:
        texts[PROBE] = content
    return Reading(values)


def _joined(runs: Sequence[list[Any]]) -> LearningCurve:
    """Join the same measure of several runs; a number that is missing is left out."""
    table = _table(runs)
    if table is None:
        lines = ((list(enumerate(n)) if (n := _numbers(run)) else _known(run)) for run in runs)
        return join(list(lines))
    return LearningCurve(
        updates=tuple(range(table.shape[1])),
        mean=tuple((table.sum(axis=0) / len(table)).tolist()),
        low=tuple(table.min(axis=0).tolist()),
        high=tuple(table.max(axis=0).tolist()),
        n=len(table),
    )


def _mean_of_known(runs: Sequence[list[Any]]) -> list[float]:
    """Return the mean over the runs whose values are all finite numbers; nothing without any."""
    table = _table(runs)
    if table is None:
        return _mean([n for run in runs if (n := _numbers(run))])
    return (table.sum(axis=0) / len(table)).tolist()


def _table(runs: Sequence[list[Any]]) -> NDArray[np.float64] | None:
    """Return lists of equally many finite numbers as one array; None where any is not such."""
    if len(set(map(len, runs))) != 1:
        return None
    try:
        found = np.array(runs)
    except (ValueError, OverflowError):
        return None
    if found.ndim != 2 or found.dtype.kind not in "fib":
        return None
    table = found.astype(np.float64)
    return table if np.isfinite(table).all() else None


@lru_cache(maxsize=4096)  # the same few names in every record of a grid
def _words(place: str) -> str:
    """Name a place as a reader would, where it is the name of a module of ours."""
    site = site_of(str(place))
    return str(place) if site is None else site.words


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _known(values: list[Any]) -> list[tuple[int, float]]:
    return [(i, float(v)) for i, v in enumerate(values) if _numbers([v])]


def _numbers(values: Any) -> list[float]:
    """Return a list of finite numbers as such; nothing where one of it is none."""
    if not isinstance(values, list) or not set(map(type, values)) <= {float, int, bool}:
        return []
    return list(map(float, values)) if all(map(math.isfinite, values)) else []


def _mean(runs: Sequence[Sequence[float]]) -> list[float]:
    return [sum(each) / len(each) for each in zip(*runs, strict=True)]
