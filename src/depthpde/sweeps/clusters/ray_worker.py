"""What Ray's workers do for a sweep: compute runs, show them while they go, keep and give records.

A worker that does not see the results folder computes in a scratch folder of its own machine, one
for each results folder. What lies there outlives the worker: a record whose machine was cut off is
fetched later, and a run that died goes on from its checkpoint where that machine is free.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from depthpde.data.reader import default_out
from depthpde.records.record import is_recorded, read_record, run_folder
from depthpde.runs.heartbeat import BEAT
from depthpde.runs.run import RunConfig
from depthpde.sweeps.clusters.record_transfer import RecordFiles, pack, pack_live
from depthpde.sweeps.executor import AttemptEnd, Folders, run_attempt

TOKEN = ".token"
"""The file by which a machine knows that it sees the results folder of the sweep."""
RECORDED = -1
"""Stands for the updates of a run whose record is whole."""


class LiveRecords:
    """What runs elsewhere last showed of themselves; an actor beside the sweep."""

    def __init__(self) -> None:
        self.newest: dict[str, RecordFiles] = {}

    def put(self, run: str, files: RecordFiles) -> None:
        """Replace a run's files by newer ones."""
        self.newest[run] = files

    def take(self) -> dict[str, RecordFiles]:
        """Return all that came since the last call."""
        taken, self.newest = self.newest, {}
        return taken


class Upload:
    """Sends a run's live files now and then while it is computed.

    Args:
        live: The actor that keeps them.
        run: Id of the run.
        folder: Where it is computed.
    """

    def __init__(self, live: Any, run: str, folder: Path) -> None:
        self.live, self.run, self.folder = live, run, folder
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._send, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()  # nothing is sent after the end is known

    def _send(self) -> None:
        while not self._stop.wait(BEAT):
            with suppress(OSError):
                self.live.put.remote(self.run, pack_live(self.folder))


def scratch(token: str) -> Path:
    """Return where this machine computes the runs of a results folder that it does not see."""
    return default_out().parent / "scratch" / token


def attempt(
    values: dict[str, Any], folders: dict[str, Any], token: str, device: str, live: Any
) -> tuple[dict[str, str], RecordFiles]:
    """Compute a run on a node of the cluster; return its end, and its files where needed.

    Args:
        values: The run's settings.
        folders: Of the sweep.
        token: What the results folder's token file says where it is seen.
        device: Where its tensors live.
        live: The actor for live records.
    """
    import ray

    run, here = RunConfig.from_dict(values), Folders.from_dict(folders)
    node = ray.get_runtime_context().get_node_id()
    files: RecordFiles = {}
    if sees(here.results, token):
        ended = run_attempt(run, here, device=device)
    else:
        here = replace(here, results=scratch(token))
        folder = run_folder(here.results, run.id)
        with Upload(live, run.id, folder):
            ended = run_attempt(run, here, device=device)
        if folder.is_dir() and ended.end is not AttemptEnd.BUSY:
            files = pack(folder)
    return {"end": ended.end.value, "why": ended.why, "node": node}, files


def held(token: str) -> dict[str, int]:
    """Return what this machine's scratch folder holds: run → updates made, or `RECORDED`."""
    found = {}
    for folder in sorted((scratch(token) / "runs").glob("*")):
        with suppress(OSError, ValueError):
            if is_recorded(scratch(token), folder.name):
                found[folder.name] = RECORDED
            else:
                found[folder.name] = int(read_record(folder).status.get("update", 0))
    return found


def fetch(token: str, run: str) -> RecordFiles:
    """Return the record of a run that was computed here and could not be delivered."""
    return pack(run_folder(scratch(token), run))


def forget(token: str, run: str) -> None:
    """Remove what is left of a run whose record has arrived."""
    shutil.rmtree(run_folder(scratch(token), run), ignore_errors=True)
    for folder in (scratch(token) / "runs", scratch(token)):
        with suppress(OSError):
            folder.rmdir()  # the last one takes the folder along


def tidy(token: str, recorded: Collection[str]) -> None:
    """Remove what is left here of runs whose records have arrived, from whichever machine."""
    here = {folder.name for folder in (scratch(token) / "runs").glob("*")}
    for run in here & set(recorded):
        forget(token, run)


def sees(results: Path, token: str) -> bool:
    """Say whether this machine sees the results folder of the sweep."""
    try:
        return (results / TOKEN).read_text(encoding="utf-8") == token
    except OSError:
        return False
