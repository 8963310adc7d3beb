"""How soon a dashboard of thousands of runs answers, against bars that ``--check`` enforces.

    python benchmarks/dashboard.py [--check] [--records 2000] [--json]

Synthetic records lie in a folder that is removed afterwards. A real server is asked over a real
socket. The first page is measured twice: at a dashboard that has read nothing yet, which shows
what it has read within its patience and the rest as it comes; and whole, with every record on it.
The update is what one look costs when one record is new. What can be asked again is asked nine
times, and the median is judged.
"""

from __future__ import annotations

import argparse
import http.client
import json
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

from depthpde.records.index.index import Index
from depthpde.records.record import (
    CONFIG,
    ENVIRONMENT,
    FORMAT,
    METRICS,
    RESULT,
    STATUS,
    Cell,
    Grid,
    run_folder,
    write_grid,
)
from depthpde.web.board import draw_board
from depthpde.web.dashboard import Dashboard
from depthpde.web.security import Access
from depthpde.web.server import make_server, open_socket

TASKS = tuple(f"{name}-mini" for name in ("listops", "text", "image", "pathfinder", "retrieval"))
SEEDS = 10
REPEATS = 9


@dataclass(frozen=True)
class Row:
    """One measurement and its bar; a bar of 0 is none."""

    name: str
    milliseconds: float
    bar: float = 0.0

    @property
    def holds(self) -> bool:
        """Whether the bar is met."""
        return not self.bar or self.milliseconds <= self.bar

    def __str__(self) -> str:
        verdict = ("ok" if self.holds else "MISSED") if self.bar else ""
        bar = f"≤ {self.bar:,.0f}" if self.bar else ""
        return f"{self.name:58} {self.milliseconds:>10,.1f} ms {bar:>8} {verdict}".rstrip()


def write_record(results: Path, task: str, variant: str, seed: int) -> Cell:
    """Write a finished run of the usual size: four ratios of 64 features, 60 points."""
    run = sha256(f"{task} {variant} {seed}".encode()).hexdigest()[:16]
    folder = run_folder(results, run)
    folder.mkdir(parents=True)
    accuracy = 30 + int(run[:4], 16) / 2**14
    config = {"task": task, "seed": seed, "protocol": "strict", "model": {"dim": 64, "blocks": 4}}
    point = {"kind": "point", "epoch": 0, "loss": 2.0, "accuracy": 30.0, "gradient_norm": 1.0}
    result = {
        "format": FORMAT, "id": run, "status": "done", "update": 600, "reason": "",
        "test": {"accuracy": accuracy, "loss": 1.5, "targets": 2000, "correct": 700},
        "ratios": {f"block {k}": [0.125 + i / 1024 for i in range(64)] for k in range(4)},
        "trivial": {"majority": 16.9}, "seconds": 60.0,
    }  # fmt: skip
    files = {
        CONFIG: {"format": FORMAT, "id": run, "label": variant, "config": config},
        ENVIRONMENT: {"versions": {"depthpde": "0.1.0"}, "device": "cpu"},
        STATUS: {"state": "done", "update": 600, "updates": 600},
        RESULT: result,
    }
    for name, values in files.items():
        (folder / name).write_text(json.dumps(values))
    lines = (json.dumps(point | {"update": 10 * k}) + "\n" for k in range(60))
    (folder / METRICS).write_text("".join(lines))
    return Cell(task, variant, seed, run)


def write_results(results: Path, records: int) -> None:
    """Write a grid of so many runs."""
    variants = [f"variant {k}" for k in range(-(-records // (len(TASKS) * SEEDS)))]
    asked = [(t, v, s) for v in variants for t in TASKS for s in range(SEEDS)][:records]
    cells = tuple(write_record(results, *each) for each in asked)
    write_grid(results, Grid("synthetic", "How many?", variants[0], cells, {}))


def milliseconds(work: Callable[[], object]) -> float:
    """Time one call."""
    start = time.perf_counter()
    work()
    return 1e3 * (time.perf_counter() - start)


def fetch(port: int, path: str = "/") -> str:
    """Ask the server for a page, on a new connection as a browser's first visit is."""
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    try:
        line.request("GET", path)
        answer = line.getresponse()
        if answer.status != 200:
            raise RuntimeError(f"{path} gave {answer.status}")
        return answer.read().decode()
    finally:
        line.close()


def measure_pages(results: Path, records: int) -> list[Row]:
    """Ask a server that has read nothing for its first page, then for whole ones."""
    bound = open_socket("127.0.0.1", 0)
    dashboard = Dashboard(results)
    server = make_server(dashboard, Access("127.0.0.1", None))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
    thread.start()
    try:
        port = int(bound.getsockname()[1])
        while not server.started:
            time.sleep(0.01)
        dashboard.start()
        cold = milliseconds(lambda: fetch(port))
        start = time.perf_counter()
        dashboard.whole()
        read = cold + 1e3 * (time.perf_counter() - start)
        if f"{records:,} done" not in fetch(port):
            raise RuntimeError("the board does not show every record")
        whole = statistics.median(milliseconds(lambda: fetch(port)) for _ in range(REPEATS))
        comparing = [milliseconds(lambda: fetch(port, "/compare")) for _ in range(2)]
    finally:
        server.should_exit = True
        thread.join()
        bound.close()
    return [
        Row(f"first page, nothing read yet ({records:,} records)", cold, 1000),
        Row(f"first page with all {records:,} records", whole, 1000),
        Row("until all records were read, from the start", read),
        Row("compare page, records read for the first time", comparing[0]),
        Row("compare page, again", comparing[1]),
    ]


def measure_updates(results: Path, records: int) -> list[Row]:
    """Time looks at a folder that is known: nothing new, and one new record each time."""
    index = Index(results)
    while index.look().unread:
        pass
    idle = statistics.median(milliseconds(index.look) for _ in range(REPEATS))
    updates = []
    for seed in range(REPEATS):
        write_record(results, TASKS[0], "new", seed)
        updates.append(milliseconds(index.look))
    snapshot = index.look()
    if len(snapshot.entries) != records + REPEATS:
        raise RuntimeError("a new record was not found")
    drawing = statistics.median(
        milliseconds(lambda: draw_board(snapshot, index.all_grids().values()))
        for _ in range(REPEATS)
    )
    return [
        Row("index update for one new record", statistics.median(updates), 50),
        Row("a look with nothing new", idle),
        Row("arranging the board", drawing),
    ]


def main() -> int:
    """Measure, print, and fail where a bar is missed and ``--check`` is given."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit 1 where a bar is missed")
    parser.add_argument("--records", type=int, default=2000)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder)
        write_results(results, arguments.records)
        rows = measure_pages(results, arguments.records)
        rows += measure_updates(results, arguments.records)
    if arguments.json:
        print(json.dumps([asdict(row) for row in rows], indent=1))
    else:
        print("\n".join(str(row) for row in rows))
    return 1 if arguments.check and not all(row.holds for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
