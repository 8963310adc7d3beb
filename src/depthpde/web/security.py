"""Who may ask, and what a page may do: every request passes here first.

Reading only (GET, HEAD), by a known name of this machine (against DNS rebinding), with the token
where there is one. Every answer carries headers under which a page runs our own script and style
and nothing else, so that a name inside a record can never become code.
"""

from __future__ import annotations

import ipaddress
import re
import secrets
import socket
from collections.abc import MutableMapping
from dataclasses import dataclass
from functools import cache
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_HOST = re.compile(r"(?:\[(?P<six>[0-9a-f:.]+)\]|(?P<name>[a-z0-9._-]+))(?::[0-9]{1,5})?", re.ASCII)
"""A name or address, IPv6 in brackets, and a port: nothing before, between or after."""
SHORTEST_TOKEN = 16
"""Letters that a token of one's own must have."""

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


@dataclass(frozen=True, slots=True)
class Access:
    """Where the dashboard listens and what it asks of a visitor."""

    host: str
    """The address it is bound to."""
    token: str | None
    """What a visitor must show; None for nothing."""

    def __post_init__(self) -> None:
        if self.token is not None and len(self.token) < SHORTEST_TOKEN:
            raise ValueError(
                f"`--token` must have at least {SHORTEST_TOKEN} letters, got {len(self.token)}; "
                "leave it out and one is made"
            )
        if self.token is not None and not (self.token.isascii() and self.token.isprintable()):
            raise ValueError("`--token` must be printable ASCII, so that it fits into an address")
        if self.token is None and not is_loopback(self.host):
            raise ValueError(
                f"`--host` {self.host} can be reached by others, so a token is needed, got none; "
                "leave `--token` out and one is made"
            )

    def admits_host(self, header: str) -> bool:
        """Say whether a Host header names this machine.

        A page of a stranger can point its own name at our address, but cannot claim to be an
        address, so a plain address is safe; on loopback only loopback's own are.
        """
        name = _host_name(header)
        if name in ("localhost", self.host.lower()):
            return True
        address = _address(name)
        if is_loopback(self.host):
            return address is not None and address.is_loopback
        return address is not None or name in own_names()

    def admits_token(self, shown: str | None) -> bool:
        """Compare a token in a time that tells nothing about it."""
        if self.token is None:
            return True
        if shown is None:
            return False
        return secrets.compare_digest(shown.encode("utf-8", "replace"), self.token.encode())


def make_access(host: str, token: str | None) -> Access:
    """Return the access for an address: a token is made where one is needed and none is given."""
    if token is None and not is_loopback(host):
        token = secrets.token_urlsafe(32)
    return Access(host, token)


@cache
def own_names() -> tuple[str, ...]:
    """Return what this machine is called by others, the fullest name first; asked once."""
    names = [each.lower() for each in (socket.getfqdn(), socket.gethostname())]
    return tuple(dict.fromkeys(each for each in names if not each.startswith("localhost")))


def is_loopback(host: str) -> bool:
    """Say whether an address can be reached from this machine only."""
    if host.lower() == "localhost":
        return True
    address = _address(host)
    return address is not None and address.is_loopback


class Guard:
    """Lets a request through to the pages, or answers it itself.

    Args:
        app: The pages.
        access: Who may ask.
    """

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self.app, self.access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return  # no web sockets, and nothing to start or stop
        refusal = self._refuse(scope)
        await (refusal or self.app)(scope, receive, _with_headers(send))

    def _refuse(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if scope["method"] not in ("GET", "HEAD"):
            words = "This dashboard only shows; it changes nothing. Use GET."
            return PlainTextResponse(words, 405, {"allow": "GET, HEAD"})
        if not self.access.admits_host(headers.get("host", "")):
            words = "This dashboard does not go by that name. Open the address that it printed."
            return PlainTextResponse(words, 421)
        if self.access.token is None:
            return None
        return self._ask_for_token(scope, headers)

    def _ask_for_token(self, scope: Scope, headers: Headers) -> Response | None:
        """Admit a cookie or a bearer; turn a token in the address into a cookie."""
        cookie = f"depthpde-{(scope.get('server') or ('', 0))[1]}"
        kind, _, bearer = headers.get("authorization", "").partition(" ")
        shown = bearer if kind.lower() == "bearer" else _cookie(headers.get("cookie", ""), cookie)
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = next((value for name, value in query if name == "token"), None)
        if given is not None and self.access.admits_token(given):
            rest = urlencode([(name, value) for name, value in query if name != "token"])
            # one leading slash only: two would send the visitor to another machine
            path = "/" + quote(scope["path"].lstrip("/\\"))
            answer = RedirectResponse(path + (f"?{rest}" if rest else ""), 303)
            answer.set_cookie(cookie, given, httponly=True, samesite="lax", path="/")
            return answer
        if self.access.admits_token(shown):
            return None
        words = (
            "This dashboard needs its token: open the whole address that `depthpde dash` printed."
        )
        return PlainTextResponse(words, 401, {"www-authenticate": "Bearer"})


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            _add_headers(message)
        await send(message)

    return sending


def _add_headers(message: MutableMapping[str, Any]) -> None:
    own = {name for name, _ in message["headers"]}
    extra = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
    message["headers"] = [*message["headers"], *(each for each in extra if each[0] not in own)]


def _cookie(header: str, name: str) -> str | None:
    try:
        found = SimpleCookie(header).get(name)
    except CookieError:
        return None
    return None if found is None else found.value


def _host_name(header: str) -> str:
    """Take the port off a Host header, another may have been forwarded here; "" if it is none."""
    found = _HOST.fullmatch(header.lower())
    return "" if found is None else found["six"] or found["name"]


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None
