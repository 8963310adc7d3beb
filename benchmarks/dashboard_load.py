"""The dashboard under load: sixteen readers of the board, and two hundred who never finish asking.

    python benchmarks/dashboard_load.py [--check] [--results results]

A real server in a process of its own, asked over real sockets on kept connections.
"""

from __future__ import annotations

import argparse
import socket
import threading
import time
from pathlib import Path

from dashboard import crowd, dashboard, fetch, late

RATE, LATE = 100.0, 0.3
"""Requests a second at least, and seconds that at most one request in a hundred may take."""
SLOW, CLOSED = 200, 15.0
"""Connections that send half a request, and seconds after which all of them must be closed."""
HALF = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "


def slow_clients(port: int) -> list[float]:
    """Open connections, send half a request on each, and return when each was closed."""
    began = time.perf_counter()
    lines = [socket.create_connection(("127.0.0.1", port), timeout=60) for _ in range(SLOW)]
    for each in lines:
        each.sendall(HALF)
    ends = []
    for each in lines:
        each.recv(1)
        ends.append(time.perf_counter() - began)
        each.close()
    return ends


def main() -> int:
    """Measure, print, and fail where a bar is missed and ``--check`` is given."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit 1 where a bar is missed")
    parser.add_argument("--results", type=Path, default=Path(__file__).parents[1] / "results")
    arguments = parser.parse_args()
    rows: list[tuple[str, float, bool]] = []
    with dashboard(arguments.results) as (port, _):
        fetch(port, "/")
        for name in ("alone", f"beside {SLOW} slow clients"):
            ends: list[float] = []
            slow = threading.Thread(target=lambda ends=ends: ends.extend(slow_clients(port)))
            if name != "alone":
                slow.start()
            start = time.perf_counter()
            waits = crowd(port, "/", asks=40)
            rate = len(waits) / (time.perf_counter() - start)
            rows.append((f"board, 16 connections, requests a second, {name}", rate, rate >= RATE))
            rows.append(
                (f"board, 16 connections, p99, s, {name}", late(waits), late(waits) <= LATE)
            )
            if name != "alone":
                slow.join()
                closed = max(ends)
                rows.append((f"{SLOW} slow clients closed after, s", closed, closed <= CLOSED))
    for name, value, holds in rows:
        print(f"{name:64} {value:9.2f}  {'ok' if holds else 'MISSED'}")
    return 1 if arguments.check and not all(holds for _, _, holds in rows) else 0


if __name__ == "__main__":
    raise SystemExit(main())
