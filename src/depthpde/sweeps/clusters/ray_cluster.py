"""Ray as a place for runs: a cluster that exists, or one started here.

A worker that sees the results folder works in it, and its checkpoints outlive it. One that does
not works in a folder of its own machine, and its record travels: now and then while it runs,
whole when it ends. Nothing but plain values and bytes is sent.
"""

from __future__ import annotations

import time
import uuid
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from depthpde.files import write_whole
from depthpde.records.record import RESULT, RUNS, run_folder
from depthpde.runs.heartbeat import BEAT
from depthpde.runs.run import RunConfig
from depthpde.sweeps.clusters.ray_connection import connect
from depthpde.sweeps.clusters.ray_head import HeadWatch
from depthpde.sweeps.clusters.ray_worker import (
    RECORDED,
    TOKEN,
    LiveRecords,
    attempt,
    fetch,
    forget,
    held,
    tidy,
)
from depthpde.sweeps.clusters.record_transfer import unpack
from depthpde.sweeps.executor import Attempt, AttemptEnd, Folders

UNLIMITED = 10_000
ANSWER = 10.0
"""Seconds that a node is given to say what it holds."""


class RayCluster:
    """Runs as Ray tasks; one whose worker or node dies is tried again.

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
        self.token, self.device = _token(folders.results), device
        self._flying: dict[Any, str] = {}
        self._fetched = 0.0
        context = self.ray.get_runtime_context()
        self._head = HeadWatch(context.gcs_address, self.folders.results)
        stay = self._at(context.get_node_id())
        self._live = self.ray.remote(LiveRecords).options(num_cpus=0, **stay).remote()
        self._room = {"num_cpus": cpus, "num_gpus": gpus, "max_retries": 0}
        self._given: set[str] = set()
        self._arrived: list[Attempt] = []
        self._held = self._ask_what_is_held()

    def start(self, run: RunConfig) -> None:
        """Submit a run, or fetch its record from the machine that has it.

        A run that was begun on a machine that is back goes on there; else Ray finds a node.
        """
        if run.id in self._given:
            self._held = self._ask_what_is_held()
        self._given.add(run.id)
        node, made = self._held.get(run.id, ("", 0))
        if made == RECORDED and self._fetch(run.id, node):
            self._arrived.append(Attempt(run.id, AttemptEnd.RECORDED))
            return
        where = self._at(node, soft=True) if made > 0 else {"scheduling_strategy": "SPREAD"}
        asked = (run.to_dict(), self.folders.to_dict(), self.token, self.device, self._live)
        task = self.ray.remote(attempt).options(**self._room, **where)
        self._flying[task.remote(*asked)] = run.id

    def wait(self, seconds: float) -> list[Attempt]:
        """Return what ended, its record in place; and bring in news of what runs elsewhere."""
        self._head.check()
        arrived, self._arrived = self._arrived, []
        if not self._flying:
            return arrived
        ready, _ = self.ray.wait(
            list(self._flying), num_returns=1, timeout=0.0 if arrived else seconds
        )
        if time.monotonic() - self._fetched > BEAT / 2:
            self._fetched = time.monotonic()
            with suppress(self.ray.exceptions.RayError, OSError):
                newest = self.ray.get(self._live.take.remote(), timeout=5)
                # the record of a run that has ended is whole: late news must not touch it
                for run in newest.keys() & set(self._flying.values()):
                    unpack(newest[run], run_folder(self.folders.results, run))
        return arrived + [self._receive(each) for each in ready]

    def drop(self, run: str) -> None:
        """Kill the worker of one run that shows no life."""
        for reference in [each for each, name in self._flying.items() if name == run]:
            self.ray.cancel(reference, force=True)

    def stop(self) -> None:
        """Interrupt what is computed, and forget what waits."""
        for each in self._flying:
            self.ray.cancel(each, force=False)

    def close(self) -> None:
        """Leave the cluster; one that was started here ends."""
        if self._head.silent():
            return  # nobody is there to take leave of, and Ray would wait for an answer
        self.stop()
        self._clean()
        self._head.close()
        self.ray.shutdown()

    def _clean(self) -> None:
        """Let every machine forget the runs whose records are here, wherever they were computed."""
        results = self.folders.results
        recorded = [each.parent.name for each in (results / RUNS).glob(f"*/{RESULT}")]
        with suppress(self.ray.exceptions.RayError):
            nodes = [each["NodeID"] for each in self.ray.nodes() if each["Alive"]]
            asked = [self._on(node, tidy, self.token, recorded) for node in nodes]
            self.ray.wait(asked, num_returns=len(asked), timeout=ANSWER)

    def _receive(self, reference: Any) -> Attempt:
        run = self._flying.pop(reference)
        errors = self.ray.exceptions
        try:
            answer, files = self.ray.get(reference)
            unpack(files, run_folder(self.folders.results, run))
        except errors.TaskCancelledError:
            return Attempt(run, AttemptEnd.INTERRUPTED, "interrupted")
        except errors.RayTaskError as error:  # not the run, which never raises: the worker itself
            return Attempt(run, AttemptEnd.FAILED, f"the worker cannot run it: {error.cause!r}")
        except errors.RayError as error:
            return Attempt(run, AttemptEnd.DIED, f"{type(error).__name__}: {_first_line(error)}")
        except OSError as error:
            return Attempt(run, AttemptEnd.FAILED, f"the record cannot be placed: {error}")
        ended = Attempt(run, AttemptEnd(answer["end"]), answer["why"])
        if files and ended.end is AttemptEnd.RECORDED:
            self._on(answer["node"], forget, self.token, run)
        return ended

    def _ask_what_is_held(self) -> dict[str, tuple[str, int]]:
        """Return which run lies on which machine, and how far it is."""
        nodes = [each["NodeID"] for each in self.ray.nodes() if each["Alive"]]
        asked = {self._on(node, held, self.token): node for node in nodes}
        ready, _ = self.ray.wait(list(asked), num_returns=len(asked), timeout=ANSWER)
        found: dict[str, tuple[str, int]] = {}
        for reference in ready:
            with suppress(self.ray.exceptions.RayError):
                for run, made in self.ray.get(reference).items():
                    best = found.get(run, ("", 0))[1]
                    if best != RECORDED and (made == RECORDED or made >= best):
                        found[run] = asked[reference], made
        return found

    def _fetch(self, run: str, node: str) -> bool:
        """Bring a finished record here; False where its machine does not answer."""
        try:
            files = self.ray.get(self._on(node, fetch, self.token, run), timeout=6 * ANSWER)
            unpack(files, run_folder(self.folders.results, run))
        except (self.ray.exceptions.RayError, OSError):
            return False
        self._on(node, forget, self.token, run)
        return True

    def _on(self, node: str, function: Any, *values: Any) -> Any:
        """Call a function on one node, beside what is computed there."""
        options = self._at(node) | {"num_cpus": 0, "max_retries": 0}
        return self.ray.remote(function).options(**options).remote(*values)

    def _at(self, node: str, *, soft: bool = False) -> dict[str, Any]:
        affinity = self.ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        return {"scheduling_strategy": affinity(node, soft=soft)}


def _token(results: Path) -> str:
    """Return the word by which a machine knows that it sees this very folder."""
    path = results / TOKEN
    results.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        write_whole(path, uuid.uuid4().hex)
    return path.read_text(encoding="utf-8")


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]
