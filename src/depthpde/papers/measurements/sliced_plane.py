"""The sliced information plane of a run, kept beside its record.

    RUNS/ID/information.json    at its start and at its end: SI(X; T_l) and SI(T_l; Y) of the
                                first, the middle and the last layer, a second each

The start is made again from the run's config, so it can be measured for every record. The end
needs weights: the record's own, or those of the same run computed again, which count only if they
give the record's predictions to the byte.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from depthpde.data.reader import Split
from depthpde.data.task import TaskKind
from depthpde.files import write_json
from depthpde.measures.information import LEAST
from depthpde.measures.sliced import SlicedInformation, sliced_about_label, sliced_between
from depthpde.models.pretrained import CONFIG, Pretrained
from depthpde.papers.experiment import INFORMATION
from depthpde.papers.measurements.observation import (
    Observation,
    pooled_states,
    split_of,
    trained_model,
)
from depthpde.records.record import PREDICTIONS, Record, read_record, run_folder
from depthpde.runs.execute import MODEL
from depthpde.runs.run import RunConfig
from depthpde.sweeps.executor import Folders
from depthpde.threads import one_thread

FORMAT = 1
DIGITS = 6
"""Kept of every number: far below the spread of any null."""


def sliced_plane(
    record: Record, folders: Folders, look: Observation, *, weights: Path | None = None
) -> dict[str, Any] | None:
    """Estimate a run's sliced information plane, or read what was estimated.

    None for a language model, which has no label for an example, and where `look` leaves it out.

    Args:
        record: The run.
        folders: Where its data lie.
        look: How many examples and slices.
        weights: Another results folder with the same run, computed again and its weights kept.
    """
    run = RunConfig.from_dict(record.config)
    path = record.folder / INFORMATION
    asked = {"format": FORMAT, "examples": look.informed, "slices": look.slices}
    known: dict[str, Any] = {}
    if path.is_file():
        stored = json.loads(path.read_text(encoding="utf-8"))
        known = stored if {key: stored.get(key) for key in asked} == asked else {}
    source = _source(record, weights)
    if known and (known["end"] is not None or source is None):
        return known
    split = split_of(run, folders)
    if split.kind is TaskKind.LANGUAGE or not look.slices or look.informed < LEAST:
        return None
    with one_thread():
        start = run.build()
        assert isinstance(start, Pretrained), "every run builds one of ours"
        found = asked | {
            "start": known.get("start") or _estimates(start.eval(), split, look),
            "end": None if source is None else _estimates(trained_model(source), split, look),
        }
    write_json(path, found)
    return found


def _source(record: Record, weights: Path | None) -> Record | None:
    """Return the record whose folder holds the weights of a run; None where nobody kept them."""
    if (record.folder / MODEL / CONFIG).is_file():
        return record
    folder = None if weights is None else run_folder(weights, record.id)
    if folder is None or not (folder / MODEL / CONFIG).is_file():
        return None
    ours, theirs = (each / PREDICTIONS for each in (record.folder, folder))
    if not ours.is_file() or not theirs.is_file() or ours.read_bytes() != theirs.read_bytes():
        raise ValueError(
            f"{folder} must be run {record.id} computed again, got other predictions than "
            f"{record.folder} holds; compute it with the versions of its environment.json"
        )
    return read_record(folder)


def _estimates(model: Pretrained, split: Split, look: Observation) -> list[dict[str, Any]] | None:
    """Estimate both informations of three layers; None where nothing can be estimated."""
    states, labels = pooled_states(model, split, look.informed)
    if len(labels) < LEAST or not all(bool(each.isfinite().all()) for each in states):
        return None
    last = len(states) - 1
    return [
        {
            "layer": layer,
            "input": _plain(sliced_between(states[0], states[layer], slices=look.slices)),
            "label": _plain(sliced_about_label(states[layer], labels, slices=look.slices)),
        }
        for layer in dict.fromkeys((0, (last + 1) // 2, last))
    ]


def _plain(found: SlicedInformation) -> dict[str, Any]:
    names: Sequence[str] = ("value", "error", "null", "null_spread", "recovered", "known")
    numbers: dict[str, Any] = {name: round(getattr(found, name), DIGITS) for name in names}
    return numbers | {"detected": found.detected, "unreliable": found.unreliable}
