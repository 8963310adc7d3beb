from __future__ import annotations

import http.client
import socket
import subprocess
import sys
import time

import pytest

from depthpde.web import server
from depthpde.web.server import PORTS, open_socket
from web.conftest import serving


def test_a_port_in_use_is_told_with_one_that_is_free() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(
            OSError, match=rf"`--port` {port} is in use; port \d+ is free"
        ) as output:
            open_socket("127.0.0.1", port)
    free = int(str(output.value).split("port ")[-1].split()[0])
    with open_socket("127.0.0.1", free) as bound:
        assert bound.getsockname()[1] == free


def test_a_second_dashboard_takes_another_port() -> None:
    with open_socket("127.0.0.1", None) as first, open_socket("127.0.0.1", None) as second:
        ports = [each.getsockname()[1] for each in (first, second)]
    assert ports[0] != ports[1]
    assert all(port in PORTS for port in ports)


def test_an_address_of_another_machine_cannot_be_bound() -> None:
    with pytest.raises(OSError, match=r"`--host` 203\.0\.113\.7 cannot be bound"):
        open_socket("203.0.113.7", 0)


def test_a_name_that_nobody_knows_cannot_be_bound() -> None:
    with pytest.raises(OSError, match=r"`--host` no\.such\.host\.invalid cannot be bound"):
        open_socket("no.such.host.invalid", 0)


def test_the_dashboard_loads_no_torch() -> None:
    """The instrument computes in the page: a server for many readers stays small."""
    code = (
        "import sys, pathlib, depthpde.web.server; from depthpde.web.dashboard import Dashboard;"
        "Dashboard(pathlib.Path('.')).pages.render('theory.html', here='Theory');"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_connections_that_never_finish_their_request_are_closed_and_others_served(
    results, monkeypatch
) -> None:
    monkeypatch.setattr(server, "REQUEST", 0.5)
    with serving(results) as site:
        slow = [socket.create_connection(("127.0.0.1", site.port), timeout=20) for _ in range(20)]
        for number, each in enumerate(slow):
            each.sendall(b"" if number % 2 else b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
        assert site.get("/")[0] == 200
        assert [each.recv(1) for each in slow] == [b""] * 20
        for each in slow:
            each.close()


def test_a_connection_that_is_kept_is_answered_again_and_again(results, monkeypatch) -> None:
    monkeypatch.setattr(server, "REQUEST", 0.5)
    with serving(results) as site:
        line = http.client.HTTPConnection("127.0.0.1", site.port, timeout=20)
        for _ in range(3):
            line.request("GET", "/static/icon.svg")
            assert line.getresponse().read()
            time.sleep(0.4)
        line.close()
