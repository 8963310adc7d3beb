"""From pages to a server: the guard in front, a socket on a free port."""

from __future__ import annotations

import asyncio
import errno
import socket
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from depthpde.web.dashboard import Dashboard
from depthpde.web.security import Access, Guard

PORTS = range(8765, 8865)
"""Tried in turn where no port is given, so that two dashboards can run side by side."""

REQUEST = 10.0
"""Seconds within which a request must have come whole; a connection that is slower is closed."""


class TimedProtocol(H11Protocol):
    """HTTP that closes slow connections: uvicorn waits for the end of a request for ever."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Stop waiting once the request is whole; go on where another one has begun."""
        super().data_received(data)
        if self._asked:
            self._stop_waiting()
        elif self._timer is None:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the timer with the connection."""
        self._stop_waiting()
        super().connection_lost(exc)

    @property
    def _asked(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _wait(self) -> None:
        self._timer = self.loop.call_later(REQUEST, self._give_up)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        self._timer = None
        if not self._asked and not self.transport.is_closing():
            self.transport.close()


def build_app(dashboard: Dashboard, access: Access) -> ASGIApp:
    """Build the application: the pages behind their guard."""
    wrong = {HTTPException: dashboard.wrong, Exception: dashboard.wrong}
    return Guard(Starlette(routes=dashboard.routes(), exception_handlers=wrong), access)


def open_socket(host: str, port: int | None) -> socket.socket:
    """Listen at an address; an error names a free port.

    Args:
        host: The address.
        port: The port; None for the first free one from 8765 on.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    ports = PORTS if port is None else [port]
    for each in ports:
        bound = socket.socket(family, socket.SOCK_STREAM)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((host, each))
            bound.listen()  # who connects before the server runs waits, instead of failing
        except OSError as error:
            bound.close()
            if error.errno != errno.EADDRINUSE:
                raise OSError(f"`--host` {host} cannot be bound: {error.strerror}") from error
        else:
            return bound
    raise OSError(f"`--port` {ports[0]} is in use; port {_free_port(host, family)} is free")


def make_server(dashboard: Dashboard, access: Access) -> uvicorn.Server:
    """Build the server; when it wants to end, so do the streams of the dashboard."""
    config = uvicorn.Config(
        build_app(dashboard, access),
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        http=TimedProtocol,
        loop="asyncio",
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=2,
    )
    server = uvicorn.Server(config)
    dashboard.closing = lambda: server.should_exit
    return server


def serve(dashboard: Dashboard, access: Access, bound: socket.socket) -> None:
    """Serve until interrupted."""
    server = make_server(dashboard, access)
    dashboard.start()
    server.run(sockets=[bound])


def _free_port(host: str, family: socket.AddressFamily) -> int:
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])
