"""Ray as a place for runs: a cluster that exists, or one started here.

A worker that sees the results folder works in it, and its checkpoints outlive it. One that does
not works in a folder of its own machine, and its record travels: now and then while it runs,
whole when it ends. Nothing but plain values and bytes is sent.
"""

from __future__ import annotations

import threading
import time
import uuid
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from depthpde.data.reader import default_out
from depthpde.files import write_whole
from depthpde.records.record import run_folder
from depthpde.runs.heartbeat import BEAT
from depthpde.runs.run import RunConfig
from depthpde.sweeps.executor import Attempt, AttemptEnd, Folders, run_attempt
from depthpde.sweeps.ray_connection import connect
from depthpde.sweeps.record_transfer import RecordFiles, pack, pack_live, unpack

TOKEN = ".token"
UNLIMITED = 10_000


class RayCluster:
    """Runs as Ray tasks; one whose worker or node dies is told as such.

    Args:
        folders: Where; machines that see the results folder work in it.
        address: ``auto`` for the cluster of this machine or, without one, a new one here; or
            ``HOST:PORT`` of a cluster's head.
        slots: Most runs at once; as many as the cluster has room for if not given.
        cpus: Cores of each run.
        gpus: GPUs of each run.
        device: Where a run's tensors live.
    """

    local = False

    def __init__(
        self,
        folders: Folders,
        address: str = "auto",
        *,
        slots: int | None = None,
        cpus: int = 1,
        gpus: float = 0.0,
        device: str = "cpu",
    ) -> None:
        self.ray = connect(address)
        self.slots = slots or UNLIMITED
        self.folders = replace(folders, results=folders.results.absolute())
        self.token = _token(folders.results)
        self._ends: dict[Any, str] = {}
        self._fetched = 0.0
        here = self.ray.get_runtime_context().get_node_id()
        stay = self.ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(here, soft=False)
        self._post = self.ray.remote(_Post).options(num_cpus=0, scheduling_strategy=stay).remote()
        self._there = self.ray.remote(_attempt_there).options(
            num_cpus=cpus, num_gpus=gpus, max_retries=0, scheduling_strategy="SPREAD"
        )
        self._how = {"device": device}

    def start(self, run: RunConfig) -> None:
        """Submit a run; Ray finds a node with room for it."""
        asked = (run.to_dict(), self.folders.to_dict(), self.token, self._how, self._post)
        self._ends[self._there.remote(*asked)] = run.id

    def wait(self, seconds: float) -> list[Attempt]:
        """Return what ended, its record in place; and bring in news of what runs elsewhere."""
        ready, _ = self.ray.wait(list(self._ends), num_returns=1, timeout=seconds)
        if time.monotonic() - self._fetched > BEAT / 2:
            self._fetched = time.monotonic()
            with suppress(self.ray.exceptions.RayError, OSError):
                letters = self.ray.get(self._post.take.remote(), timeout=5)
                for run in letters.keys() & set(self._ends.values()):  # one that ended has told all
                    unpack(letters[run], run_folder(self.folders.results, run))
        return [self._receive(each) for each in ready]

    def stop(self) -> None:
        """Interrupt what is computed, and forget what waits."""
        for each in self._ends:
            self.ray.cancel(each, force=False)

    def close(self) -> None:
        """Leave the cluster; one that was started here ends."""
        self.stop()
        self.ray.shutdown()

    def _receive(self, reference: Any) -> Attempt:
        run = self._ends.pop(reference)
        errors = self.ray.exceptions
        try:
            said, parcel = self.ray.get(reference)
            unpack(parcel, run_folder(self.folders.results, run))
        except errors.TaskCancelledError:
            return Attempt(run, AttemptEnd.INTERRUPTED, "interrupted")
        except errors.RayTaskError as error:  # not the run, which never raises: the worker itself
            return Attempt(run, AttemptEnd.FAILED, f"the worker cannot run it: {error.cause!r}")
        except errors.RayError as error:
            return Attempt(run, AttemptEnd.DIED, f"{type(error).__name__}: {_first_line(error)}")
        except OSError as error:
            return Attempt(run, AttemptEnd.FAILED, f"the record cannot be placed: {error}")
        return Attempt(run, AttemptEnd(said["end"]), said["why"])


class _Post:
    """What runs elsewhere last showed of themselves; lives beside the sweep."""

    def __init__(self) -> None:
        self.letters: dict[str, RecordFiles] = {}

    def put(self, run: str, parcel: RecordFiles) -> None:
        """Leave a run's newest files."""
        self.letters[run] = parcel

    def take(self) -> dict[str, RecordFiles]:
        """Take all that came since."""
        taken, self.letters = self.letters, {}
        return taken


class _Postman:
    """Brings a run's files to the post while it is computed."""

    def __init__(self, post: Any, run: str, folder: Path) -> None:
        self.post, self.run, self.folder = post, run, folder
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._walk, daemon=True)

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
        self._thread.join()  # no letter leaves after the end is told

    def _walk(self) -> None:
        while not self._stop.wait(BEAT):
            with suppress(OSError):
                self.post.put.remote(self.run, pack_live(self.folder))


def _attempt_there(
    values: dict[str, Any], folders: dict[str, Any], token: str, how: dict[str, Any], post: Any
) -> tuple[dict[str, str], RecordFiles]:
    """Compute a run on a node of the cluster; return its end, and its files where needed."""
    run, here = RunConfig.from_dict(values), Folders.from_dict(folders)
    if _sees(here.results, token):
        ended, parcel = run_attempt(run, here, device=how["device"]), {}
    else:
        here = replace(here, results=default_out().parent / "scratch" / token)
        folder = run_folder(here.results, run.id)
        with _Postman(post, run.id, folder):
            ended = run_attempt(run, here, device=how["device"])
        parcel = pack(folder) if folder.is_dir() and ended.end is not AttemptEnd.BUSY else {}
    return {"end": ended.end.value, "why": ended.why}, parcel


def _token(results: Path) -> str:
    """Return the word by which a machine knows that it sees this very folder."""
    path = results / TOKEN
    results.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        write_whole(path, uuid.uuid4().hex)
    return path.read_text(encoding="utf-8")


def _sees(results: Path, token: str) -> bool:
    try:
        return (results / TOKEN).read_text(encoding="utf-8") == token
    except OSError:
        return False


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]
