"""How soon report and dashboard answer over thousands of runs, against bars that ``--check`` holds.

    python benchmarks/dashboard.py [--check] [--runs 1247 20000] [--folder KEPT] [--json]

The runs are the committed records again under seeds of their own (`run_folders.py`), with every
file at its true size. A real server is asked over a real socket, from a process of its own whose
memory is read. Beside the seconds of the index stands their ratio to a plain read of the same
records, and beside all seconds the CPU time they cost, so that a slow or busy machine does not
decide alone.
"""

from __future__ import annotations

import argparse
import http.client
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import quote

from depthpde.records.index.index import look_once
from depthpde.records.index.store import FOLDER
from depthpde.records.record import read_grids, read_records
from open_pages import live_run, measure_open_pages
from run_folders import STRIDE, write_copy, write_runs

BARS = {
    "index made, s": (3.0, 40.0),
    "brought up to date after one run, s": (0.2, 1.0),
    "first compare page after the start, s": (0.5, 1.0),
    "pages, warm, median, ms": (50.0, 80.0),
    "pages, warm, p99, ms": (200.0, 300.0),
    "board, 16 connections, p99, ms": (300.0, 300.0),
    "board, 16 connections, requests a second": (100.0, 100.0),
    "200 open pages, share of a core": (1.0, 1.0),
    "a cell changed on all of them, s": (2.0, 2.0),
    "report of all grids, s": (6.0, 20.0),
    "dashboard memory, MB": (200.0, 300.0),
}
"""At 1,247 and at 20,000 runs; a rate must be at least its bar, everything else at most."""
MANY = 10_000
"""Runs from which on the second bar holds."""
GROWTH = 1.05
Measured = Mapping[str, tuple[float, ...]]
"""Name → value; CPU time in the same unit; ratio of CPU times to a plain read."""


@dataclass(frozen=True)
class Row:
    """One measurement at both sizes."""

    name: str
    values: tuple[float, ...]
    bars: tuple[float, ...]
    ratios: tuple[float, ...] = ()
    """To a plain read of the same records, where that says something."""
    cpu: tuple[float, ...] = ()
    """CPU time in the unit of the value, where it was measured: of the process that works."""

    @property
    def holds(self) -> bool:
        """Whether every bar is met."""
        pairs = list(zip(self.values, self.bars, strict=False))
        if "requests" in self.name:
            return all(value >= bar for value, bar in pairs)
        return all(value <= bar for value, bar in pairs)

    def __str__(self) -> str:
        sign = "≥" if "requests" in self.name else "≤"
        cells = [
            f"{value:>9.2f} ({sign} {bar:g})"
            for value, bar in zip(self.values, self.bars, strict=False)
        ]
        ratio = ", ".join(f"×{each:.2f}" for each in self.ratios)
        verdict = "ok" if self.holds else "MISSED"
        told = f"{self.name:42} {'  '.join(f'{cell:>20}' for cell in cells)}  {verdict:6}"
        told += f"  CPU {', '.join(f'{each:.2f}' for each in self.cpu)}" if self.cpu else ""
        return f"{told}  {ratio} of a plain read" if ratio else told


def seconds(work: Callable[[], object]) -> float:
    """Time one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def worked(process: int | str = "self") -> float:
    """Return the CPU seconds that a process and the children it waited for have used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(int(each) for each in fields[11:15]) / os.sysconf("SC_CLK_TCK")


def both(work: Callable[[], object], process: int | str = "self") -> tuple[float, float]:
    """Time one call: seconds, and CPU seconds of a process meanwhile."""
    before = worked(process)
    took = seconds(work)
    return took, worked(process) - before


def fetch(port: int, path: str) -> bytes:
    """Ask the server for a page, on a new connection as a browser's first visit is."""
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    try:
        line.request("GET", path)
        answer = line.getresponse()
        if answer.status != 200:
            raise RuntimeError(f"{path} gave {answer.status}")
        return answer.read()
    finally:
        line.close()


@contextmanager
def dashboard(results: Path) -> Iterator[tuple[int, int]]:
    """Serve a folder from a process of its own; give its port and its number."""
    code = (
        "import sys; from pathlib import Path\n"
        "from depthpde.web.dashboard import Dashboard\n"
        "from depthpde.web.security import Access\n"
        "from depthpde.web.server import open_socket, serve\n"
        "bound = open_socket('127.0.0.1', 0); print(bound.getsockname()[1], flush=True)\n"
        "serve(Dashboard(Path(sys.argv[1])), Access('127.0.0.1', None), bound)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(results)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            port = int(process.stdout.readline())
            fetch(port, "/static/icon.svg")
            yield port, process.pid
        finally:
            process.terminate()


def memory(process: int) -> float:
    """Return the resident memory of a process in MB."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1000
    raise RuntimeError("no memory was told")


def crowd(port: int, path: str, connections: int = 16, asks: int = 20) -> list[float]:
    """Ask for a page on several kept connections at once; return every wait."""
    waits: list[float] = []

    def visitor() -> None:
        line = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
        for _ in range(asks):
            start = time.perf_counter()
            line.request("GET", path)
            line.getresponse().read()
            waits.append(time.perf_counter() - start)
        line.close()

    visitors = [threading.Thread(target=visitor) for _ in range(connections)]
    for each in visitors:
        each.start()
    for each in visitors:
        each.join()
    return waits


def late(waits: list[float]) -> float:
    """Return the wait that one in a hundred exceeds."""
    return sorted(waits)[min(len(waits) - 1, math.ceil(0.99 * len(waits)))]


def measure_index(results: Path) -> Measured:
    """Make the index, and bring it up to date; seconds, CPU and the ratio to a plain read."""
    plain, plain_cpu = both(lambda: read_records(results))
    print(
        f"# {results.name} runs: a plain read takes {plain:.1f} s, CPU {plain_cpu:.1f}", flush=True
    )
    shutil.rmtree(results / FOLDER, ignore_errors=True)
    made, made_cpu = both(lambda: look_once(results))
    source = next(iter(read_records(Path(__file__).parents[1] / "results").found.values())).folder
    updates = []
    for number in range(3):
        run = write_copy(results, source, 900 + number)
        updates.append(both(lambda: look_once(results)))
        shutil.rmtree(results / "runs" / run)
    update, update_cpu = sorted(updates)[1]
    return {
        "index made, s": (made, made_cpu, made_cpu / plain_cpu),
        "brought up to date after one run, s": (update, update_cpu, update_cpu / plain_cpu),
    }


def measure_pages(results: Path) -> Measured:
    """Ask a dashboard for its pages: first, warm, and by many at once."""
    grid = next(iter(read_grids(results).by_name.values()))
    run = grid.cells[0].run
    pages = ("/", f"/?grid={quote(grid.name)}", "/?state=done&sort=newest", "/compare",
             f"/run/{run}", f"/run/{run}/doctor", "/theory")  # fmt: skip
    with dashboard(results) as (port, process):
        first = both(lambda: fetch(port, "/compare"), process)
        for page in pages:
            fetch(port, page)
        before = worked(process)
        waits = [seconds(lambda page=page: fetch(port, page)) for _ in range(15) for page in pages]  # type: ignore[misc]
        page_cpu = (worked(process) - before) / len(waits)
        start = time.perf_counter()
        many = crowd(port, "/")
        rate = len(many) / (time.perf_counter() - start)
        used = memory(process)
    return {
        "first compare page after the start, s": first,
        "pages, warm, median, ms": (1e3 * statistics.median(waits), 1e3 * page_cpu),
        "pages, warm, p99, ms": (1e3 * late(waits),),
        "board, 16 connections, p99, ms": (1e3 * late(many),),
        "board, 16 connections, requests a second": (rate,),
        "dashboard memory, MB": (used,),
    }


def measure_live(results: Path) -> Measured:
    """Open two hundred boards while a run goes on and ends."""
    with live_run(results) as run, dashboard(results) as (port, process):
        share, delay = measure_open_pages(run, port, lambda: worked(process))
    return {
        "200 open pages, share of a core": (share,),
        "a cell changed on all of them, s": (delay,),
    }


def measure_report(results: Path) -> Measured:
    """Write a whole report in a process of its own, the index being there."""
    with tempfile.TemporaryDirectory() as out:
        code = (
            "import sys; from pathlib import Path; from depthpde.report.page import make_report\n"
            "make_report(Path(sys.argv[1]), Path(sys.argv[2]))"
        )
        words = [sys.executable, "-c", code, str(results), out]
        took = both(lambda: subprocess.run(words, check=True))
        largest = max(each.stat().st_size for each in Path(out).glob("*.html"))
    if largest > 500_000:
        raise RuntimeError(f"a page of the report has {largest:,} bytes, 500,000 are allowed")
    return {"report of all grids, s": took}


def measure(results: Path, runs: int) -> Measured:
    """Measure everything at one size, and print it as it comes."""
    if not (results / "runs").is_dir():
        write_runs(results, runs)
    found: dict[str, tuple[float, ...]] = {}
    for part in (measure_index, measure_pages, measure_live, measure_report):
        for name, values in part(results).items():
            found[name] = values
            told = " · ".join(f"{each:.2f}" for each in values)
            print(f"# {runs:,} runs, {name}: {told}", flush=True)
    return found


def main() -> int:
    """Measure, print, and fail where a bar is missed and ``--check`` is given."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit 1 where a bar is missed")
    parser.add_argument("--runs", type=int, nargs="+", default=[1247, 20000])
    parser.add_argument("--folder", type=Path, help="keeps the run folders for the next time")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    assert max(arguments.runs) // 100 < STRIDE, "copies must not share seeds"
    with tempfile.TemporaryDirectory() as temporary:
        home = arguments.folder or Path(temporary)
        found = [measure(home / str(runs), runs) for runs in arguments.runs]
    rows = [
        Row(
            name,
            tuple(values[name][0] for values in found),
            tuple(bars[runs >= MANY] for runs in arguments.runs),
            cpu=tuple(values[name][1] for values in found if len(values[name]) > 1),
            ratios=tuple(values[name][2] for values in found if len(values[name]) > 2),
        )
        for name, bars in BARS.items()
    ]
    if len(found) > 1:
        for name in ("index made, s", "report of all grids, s"):
            few, many = (values[name][1] for values in (found[0], found[-1]))
            exponent = math.log(many / few) / math.log(arguments.runs[-1] / arguments.runs[0])
            rows.append(
                Row(f"growth of {name.removesuffix(', s')}, exponent", (exponent,), (GROWTH,))
            )
    if arguments.json:
        print(json.dumps([asdict(row) for row in rows], indent=1))
    else:
        print(f"{'runs':42} " + "  ".join(f"{runs:>20,}" for runs in arguments.runs))
        print("\n".join(str(row) for row in rows))
    return 1 if arguments.check and not all(row.holds for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
