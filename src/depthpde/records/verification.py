"""verify(results) → Verification: every record read whole, every checksum computed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from depthpde.files import local_names
from depthpde.records.integrity.checksums import WEIGHTS, check_file, sealed_files
from depthpde.records.learning_curves import read_validations
from depthpde.records.probes import read_probe
from depthpde.records.record import RUNS, UNREADABLE, Broken, Record
from depthpde.records.results import read_results


@dataclass(frozen=True, kw_only=True, slots=True)
class Verification:
    """What a results folder holds, and what of it is not as it was written."""

    whole: tuple[str, ...]
    """Finished runs whose checksums all agree."""
    without_checksums: tuple[str, ...]
    """Finished runs of before there were checksums: what can be recomputed agrees."""
    without_weights: tuple[str, ...]
    """Runs that were copied without their model."""
    unfinished: tuple[str, ...]
    broken: tuple[Broken, ...]
    """What is not as it was written, by its path inside the folder, and why."""


def verify(results: Path) -> Verification:
    """Check every record, grid and finding of a results folder; nothing is changed.

    >>> verify(Path("results")).broken
    ()

    Args:
        results: The results folder.
    """
    read = read_results(results, stored=False)
    whole: list[str] = []
    before: list[str] = []
    light: list[str] = []
    unfinished: list[str] = []
    broken = list(read.broken)
    for name, record in read.records.items():
        wrong = _wrong(record)
        if wrong:
            broken.append(Broken(Path(RUNS) / name, local_names(wrong, results)))
        elif record.result is None:
            unfinished.append(name)
        else:
            (whole if record.checked else before).append(name)
            if not (record.folder / WEIGHTS).is_dir():
                light.append(name)
    return Verification(
        whole=tuple(whole),
        without_checksums=tuple(before),
        without_weights=tuple(light),
        unfinished=tuple(unfinished),
        broken=tuple(broken),
    )


def _wrong(record: Record) -> str:
    """Describe what of a record is not as it was written, best nothing."""
    try:
        for name in sealed_files(record.result):
            if (record.folder / name).exists():  # sizes were checked: only weights may be absent
                check_file(record.folder, name, record.result)
        record.points()
        record.predictions()
    except UNREADABLE as error:
        return str(error)
    for part in (read_probe(record), read_validations(record)):
        if part.broken is not None:
            return part.broken.reason
    return _contradiction(record)


def _contradiction(record: Record) -> str:
    """Return whether a result names a best validation that its curve does not have."""
    best = (record.result or {}).get("validation")
    looks = dict(read_validations(record).value)
    if not best or looks.get(int(best["update"])) == best["accuracy"]:
        return ""
    return (
        f"the best validation must be in the curve, got {best['accuracy']} at update "
        f"{best['update']}, where the curve has {looks.get(int(best['update']))}"
    )
