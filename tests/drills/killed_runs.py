"""Runs killed at exact file events and at random moments, each taken up again and compared.

    python killed_runs.py FOLDER PREPARED EVENTS RANDOMS      prints what was done, as JSON

A child counts what it writes into its results folder: files opened to write, folders made,
renames, removals. Another child is killed at one of these events, before it happens; a third takes
the run up. All are forks of this process, which has imported everything and computed nothing.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import torch
import torch._dynamo  # the optimizer imports it; once, before the forks

from depthpde.records.verification import verify
from depthpde.runs.execute import execute
from depthpde.runs.run import RunConfig
from drills.same_records import contents, difference
from runs.conftest import small_run

CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate"}
SECONDS = 60


def chosen_run() -> RunConfig:
    """Return a run without kernels, which every fork would have to load."""
    base = small_run()
    return replace(base, model=replace(base.model, layer="depthwise_conv"))


def child(
    results: Path, prepared: Path, *, at: int | None = None, count: Path | None = None
) -> int:
    """Execute the run in a fork; die at an event, or write down how many there are."""
    number = os.fork()
    if number:
        return number
    seen = 0

    def watch(event: str, words: tuple[object, ...]) -> None:
        nonlocal seen
        # the heartbeat writes by the clock, in a thread of its own: not the same in every run
        beats = threading.current_thread() is not threading.main_thread()
        if beats or not _writes(event, words, str(results)):
            return
        seen += 1
        if seen == at:
            os.kill(os.getpid(), signal.SIGKILL)

    try:
        sys.addaudithook(watch)
        torch.set_num_threads(1)
        execute(chosen_run(), results, prepared=prepared, log=lambda line: None)
        if count is not None:
            count.write_text(str(seen))
    except BaseException as error:
        print(repr(error), file=sys.stderr, flush=True)
        os._exit(1)
    os._exit(0)


def _writes(event: str, words: tuple[object, ...], folder: str) -> bool:
    if not words or folder not in str(words[0]):
        return False
    if event == "open":
        flags = words[2] if len(words) > 2 and isinstance(words[2], int) else 0
        return bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
    return event in CHANGES


def finish(number: int) -> int:
    """Wait for a child and return how it ended."""
    _, status = os.waitpid(number, 0)
    return os.waitstatus_to_exitcode(status)


def found_wrong(results: Path, want: dict[str, bytes]) -> str:
    """Say what is wrong with a record that was taken up; empty where nothing is."""
    broken = verify(results).broken
    return broken[0].reason if broken else difference(results / "runs" / chosen_run().id, want)


def main(folder: Path, prepared: Path, events: int, randoms: int, seed: int = 0) -> None:
    """Kill, take up, compare; print the counts and what differed."""
    whole, counted = folder / "whole", folder / "count"
    began = time.monotonic()
    assert finish(child(whole, prepared, count=counted)) == 0
    taken, total = time.monotonic() - began, int(counted.read_text())
    want, wrong = contents(whole / "runs" / chosen_run().id), []
    chance = random.Random(seed)
    points = sorted(chance.sample(range(1, total + 1), min(events, total)))
    for each, kill in enumerate([*points, *(None for _ in range(randoms))]):
        results = folder / f"killed-{each}"
        number = child(results, prepared, at=kill)
        if kill is None:
            time.sleep(chance.uniform(0.0, taken))
            os.kill(number, signal.SIGKILL)
        ended = finish(number)
        if ended != -signal.SIGKILL and (kill is not None or ended != 0):
            wrong.append(f"event {kill}: ended with {ended}")
        again = finish(child(results, prepared))
        output = found_wrong(results, want) if again == 0 else f"taken up, it ended with {again}"
        if output:
            wrong.append(f"event {kill}: {output}")
    printed = {"events": total, "at events": len(points), "at random": randoms, "wrong": wrong}
    print(json.dumps(printed))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
