"""From pages to a server: the guard in front, a socket on a free port."""

from __future__ import annotations

import errno
import socket

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from depthpde.web.dashboard import Dashboard
from depthpde.web.security import Access, Guard

PORTS = range(8765, 8865)
"""Tried in turn where no port is given, so that two dashboards can run side by side."""


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
        http="h11",
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
