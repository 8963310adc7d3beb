"""Where every number comes from: one row a run, and the environments they ran in."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from depthpde.pages.formatting import format_number, plain
from depthpde.records.evidence import Evidence, Missing, score
from depthpde.records.record import Record
from depthpde.report.variant_section import cell_anchor


@dataclass(frozen=True, kw_only=True, slots=True)
class RunRow:
    """One run of a grid."""

    anchor: str
    """Names the first run of a cell; empty for the others."""
    run: str
    task: str
    variant: str
    seed: int
    state: str
    """Followed by ° where its files have no checksums."""
    accuracy: str
    data: str
    """First digits of the SHA-256 of the task's manifest."""
    environment: str
    """Its name in the list of environments."""


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where the numbers of a whole report come from."""

    environments: Mapping[str, str]
    """Of `list_environments`."""
    rows: Mapping[str, Sequence[RunRow]]
    """Name of a grid → `run_rows`."""


def trace(records: Mapping[str, Record], grids: Iterable[Evidence]) -> Provenance:
    """List the runs of every grid, and the environments of all records, once for all pages.

    Args:
        records: Every run that was read.
        grids: What is shown of them.
    """
    environments = list_environments(records)
    return Provenance(environments, {each.name: run_rows(each, environments) for each in grids})


def run_rows(evidence: Evidence, environments: Mapping[str, str]) -> list[RunRow]:
    """List the runs of a grid by task, variant and seed; those without a result at their place.

    Args:
        evidence: The runs.
        environments: What `list_environments` returned.
    """
    names = {words: name for name, words in environments.items()}
    lacking: dict[tuple[str, str], list[Missing]] = {}
    for each in evidence.missing:
        lacking.setdefault((each.task, each.variant), []).append(each)
    rows = []
    for task in evidence.tasks:
        for variant in evidence.variants:
            name = cell_anchor(evidence, task, variant)
            for seed, run in sorted(evidence.runs.get((task, variant), {}).items()):
                rows.append(_row(task, variant, seed, run, names, name))
                name = ""
            for m in lacking.get((task, variant), ()):
                row = RunRow(
                    anchor=name, run=m.run, task=task, variant=plain(variant), seed=m.seed,
                    state=m.state, accuracy="", data="", environment="",
                )  # fmt: skip
                rows.append(row)
                name = ""
    return rows


def list_environments(records: Mapping[str, Record]) -> dict[str, str]:
    """Name the different environments of some runs → versions, commit, machine.

    A name is E and the first digits of the SHA-256 of what it names, so that records that are
    added later rename nothing.
    """
    words = sorted({_environment(record) for record in records.values()})
    digests = [hashlib.sha256(each.encode()).hexdigest() for each in words]
    digits = next(n for n in range(3, 65) if len({each[:n] for each in digests}) == len(words))
    return {f"E{digest[:digits]}": each for digest, each in zip(digests, words, strict=True)}


def _row(
    task: str, variant: str, seed: int, record: Record, environments: Mapping[str, str], name: str
) -> RunRow:
    accuracy = score(record)
    data = _mapping((record.result or {}).get("data")).get("manifest_sha256", "")
    return RunRow(
        anchor=name,
        run=record.id,
        task=task,
        variant=plain(variant),
        seed=seed,
        state=str((record.result or {}).get("status", "")) + ("" if record.checked else " °"),
        accuracy="" if accuracy is None else format_number(accuracy, 2),
        data=str(data)[:8],
        environment=environments.get(_environment(record), ""),
    )


def _environment(record: Record) -> str:
    """Spell the environment of a run, once for each of its records."""
    return record.keep("environment", lambda: _spell(record.environment))


def _spell(environment: Mapping[str, Any]) -> str:
    installed = sorted(_mapping(environment.get("versions")).items())
    versions = ", ".join(f"{name} {version}" for name, version in installed if version)
    machine = _mapping(environment.get("machine"))
    changed = " with changes" if environment.get("dirty") else ""
    commit = str(environment.get("commit") or "unknown")[:12] + changed
    hardware = ", ".join(str(machine[k]) for k in ("cpu", "platform") if machine.get(k))
    cores, threads = machine.get("cores", "?"), environment.get("threads", "?")
    where = f"{hardware or 'unknown machine'}, {cores} cores, {threads} thread(s)"
    device = str(environment.get("device") or "cpu")
    return f"commit {commit}; {versions or 'unknown versions'}; {where}, {device}"


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
