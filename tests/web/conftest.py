"""Results folders, and a dashboard of one served on a port of its own."""

from __future__ import annotations

import http.client
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from depthpde.web.dashboard import Dashboard
from depthpde.web.security import Access
from depthpde.web.server import make_server, open_socket
from report import synthesis

TASKS = ("listops-mini", "text-mini")
VARIANTS = ("baseline", "after_embedding", "depthwise conv")


@dataclass(frozen=True)
class Site:
    """A dashboard that answers."""

    results: Path
    port: int

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def get(
        self, path: str, *, method: str = "GET", **headers: str
    ) -> tuple[int, dict[str, str], str]:
        """Ask for a path exactly as it is written; nothing is tidied up on the way."""
        asked = {"host": f"127.0.0.1:{self.port}"} | headers
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            line.putrequest(method, path, skip_host=True)
            for name, value in asked.items():
                line.putheader(name, value)
            line.endheaders()
            answer = line.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, found, answer.read().decode()
        finally:
            line.close()


@contextmanager
def serving(results: Path, token: str | None = None) -> Iterator[Site]:
    """Serve a folder for as long as the block runs."""
    bound = open_socket("127.0.0.1", 0)
    server = make_server(Dashboard(results), Access("127.0.0.1", token))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive(), "the server ended before it began"
            time.sleep(0.01)
        yield Site(results, int(bound.getsockname()[1]))
    finally:
        server.should_exit = True
        thread.join(timeout=30)
        bound.close()
        assert not thread.is_alive()


@pytest.fixture(scope="session")
def shared_results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of two tasks, three variants and six seeds; not to be changed."""
    folder = tmp_path_factory.mktemp("results")
    grid = synthesis.write_placement(folder, tasks=TASKS, variants=VARIANTS)
    synthesis.write_probe(folder, grid.cells[0].run)
    return folder


@pytest.fixture
def results(shared_results: Path, tmp_path: Path) -> Path:
    """Return a copy of that folder, free to be changed."""
    return Path(shutil.copytree(shared_results, tmp_path / "results"))


@pytest.fixture(scope="session")
def site(shared_results: Path) -> Iterator[Site]:
    """Serve the shared folder."""
    with serving(shared_results) as served:
        yield served
