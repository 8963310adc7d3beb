"""The protocol of a results folder: laid down before its first run, and never changed after it.

RESULTS/protocols/NAME.json    the protocol, its digest, and the time it was laid down
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path

from depthpde.files import read_plain, write_json
from depthpde.locks import GRIDS_LOCK, locked
from depthpde.records.protocols.protocol import StudyProtocol

PROTOCOLS = "protocols"


@dataclass(frozen=True, slots=True)
class Sealed:
    """A protocol as a results folder holds it."""

    protocol: StudyProtocol
    digest: str
    """The digest it was laid down with."""
    since: float
    """When, in seconds since 1970."""


def seal(results: Path, protocol: StudyProtocol, *, now: float | None = None) -> Sealed:
    """Lay a protocol down before the first run, or refuse another one of its name.

    The same protocol may be laid down again: nothing is written then.

    Args:
        results: The results folder.
        protocol: What is fixed.
        now: The time, in seconds since 1970; the clock's unless given.
    """
    there = sealed(results, protocol.name)
    if there is None:
        path = results / PROTOCOLS / f"{protocol.name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        since = time.time() if now is None else now
        with locked(
            results / GRIDS_LOCK
        ):  # another process may have been first, with another protocol
            there = sealed(results, protocol.name)
            if there is None:
                there = Sealed(protocol, protocol.digest, since)
                write_json(
                    path, {"digest": there.digest, "since": since, "protocol": protocol.to_dict()}
                )
    _check_same(there, protocol)
    return there


def check_sealed(results: Path, protocol: StudyProtocol) -> None:
    """Refuse a protocol that is not the one laid down under its name; nothing is written.

    Args:
        results: The results folder; one without such a protocol refuses nothing.
        protocol: What its runs would be judged by.
    """
    there = sealed(results, protocol.name)
    if there is not None:
        _check_same(there, protocol)


def _check_same(there: Sealed, protocol: StudyProtocol) -> None:
    if there.digest != protocol.digest:
        raise ValueError(
            f"protocol {protocol.name!r} must be the one its runs were made under "
            f"({there.digest}), got {protocol.digest}, which differs in "
            f"{', '.join(changes(there.protocol, protocol))}; give the changed protocol a new "
            "name and fresh test seeds"
        )


def sealed(results: Path, name: str) -> Sealed | None:
    """Return the protocol that a results folder holds under a name; None without.

    A file whose text does not fit its digest was edited after it was laid down, and is refused.
    """
    path = results / PROTOCOLS / f"{name}.json"
    return _read(path) if path.is_file() else None


def read_protocol(path: Path) -> StudyProtocol:
    """Return the protocol that a file of a results folder holds, or raise why it holds none."""
    return _read(path).protocol


def _read(path: Path) -> Sealed:
    try:
        values = json.loads(read_plain(path))
        protocol = StudyProtocol.from_dict(values["protocol"])
        digest, since = str(values["digest"]), float(values["since"])
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{path} must be a whole protocol, got one that cannot be read ({error}); take it "
            "from the commit before the first run"
        ) from error
    if protocol.digest != digest or protocol.name != path.stem:
        raise ValueError(
            f"{path} must be as it was laid down ({digest}), got {protocol.digest} of "
            f"{protocol.name!r}: it was edited; take it from the commit before the first run"
        )
    return Sealed(protocol, digest, since)


def changes(before: StudyProtocol, after: StudyProtocol) -> list[str]:
    """Name the fields in which two protocols differ."""
    old, new = before.to_dict(), after.to_dict()
    return [name for name in old if old[name] != new[name]]
