"""``depthpde dash``: the results of a folder as live pages."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from urllib.parse import quote

SUMMARY = "show a results folder as live, read-only pages in the browser"
EXAMPLES = """examples:
  depthpde dash results
  depthpde dash results --port 9000 --open
  depthpde dash results --host 0.0.0.0        (prints an address with a token)

Only this machine can see the pages unless --host says otherwise; from a cluster, forward the port:
  ssh -L 8765:localhost:8765 NODE depthpde dash results"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument("results", metavar="RESULTS", type=Path, help="the results folder")
    parser.add_argument("--host", default="127.0.0.1", help="address to bind (default: 127.0.0.1)")
    parser.add_argument("--port", type=int, help="port (default: the first free one from 8765 on)")
    parser.add_argument(
        "--token", help="what visitors must show; made and printed where --host needs one"
    )
    parser.add_argument("--open", action="store_true", help="open the browser")
    parser.add_argument("--json", action="store_true", help="print the address as one JSON object")


def run(args: argparse.Namespace) -> int:
    """Serve the pages until interrupted."""
    _check(args)
    try:
        from depthpde.web.dashboard import Dashboard
        from depthpde.web.security import make_access
        from depthpde.web.server import open_socket, serve
    except ModuleNotFoundError as error:
        raise ValueError(
            f"the dashboard needs {error.name}; install it with: pip install 'depthpde[web]'"
        ) from error

    access = make_access(args.host, args.token)
    bound = open_socket(args.host, args.port)
    port = bound.getsockname()[1]
    address = _address(args.host, port, access.token)
    if args.json:
        payload = {"address": address, "host": args.host, "port": port, "token": access.token}
        print(json.dumps(payload), flush=True)
    else:
        print(f"{args.results} at {address}\nread-only; Ctrl-C ends it", flush=True)
    if args.open:
        import webbrowser

        webbrowser.open(address)
    try:
        serve(Dashboard(args.results), access, bound)
    except KeyboardInterrupt:
        print("closed", file=sys.stderr)
    return 0


def _address(host: str, port: int, token: str | None) -> str:
    """Return what to open: from elsewhere by this machine's own name, if it serves elsewhere."""
    from depthpde.web.security import own_names

    shown = {"127.0.0.1": "localhost", "::1": "localhost"}.get(host, host)
    if host in ("0.0.0.0", "::"):
        shown = next(iter(own_names()), "localhost")
    place = f"http://{f'[{shown}]' if ':' in shown else shown}:{port}/"
    return place if token is None else f"{place}?token={quote(token, safe='')}"


def _check(args: argparse.Namespace) -> None:
    if not args.results.is_dir():
        raise FileNotFoundError(
            f"`RESULTS` must be a folder, got {args.results}; make one with: depthpde demo, or "
            "depthpde sweep placement --scale mini --seeds 6"
        )
    if args.port is not None and not 1 <= args.port <= 65535:
        raise ValueError(f"`--port` must lie in 1 … 65535, got {args.port}")
