"""A small hub on this machine: repositories in memory, the addresses of a push and a fetch."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COMMIT = "a" * 40


def make_handler(files: dict[str, dict[str, bytes]]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            """Stay quiet."""

        def answer(self, output: object, code: int = 200) -> None:
            body = json.dumps(output).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if self.path == "/api/repos/create":
                output = json.loads(body)
                name = f"{output['organization']}/{output['name']}"
                files.setdefault(name, {})
                host = f"http://{self.headers['Host']}"
                self.answer({"url": f"{host}/{name}", "name": name})
            elif "/preupload/" in self.path:
                asked = json.loads(body)["files"]
                self.answer(
                    {
                        "files": [
                            {"path": f["path"], "uploadMode": "regular", "shouldIgnore": False}
                            for f in asked
                        ]
                    }
                )
            elif "/commit/" in self.path:
                name = "/".join(self.path.split("/")[3:5])
                for line in map(json.loads, body.splitlines()):
                    if line["key"] == "file":
                        value = line["value"]
                        files[name][value["path"]] = base64.b64decode(value["content"])
                address = f"http://{self.headers['Host']}/{name}/commit/{COMMIT}"
                self.answer({"commitUrl": address, "commitOid": COMMIT, "hookOutput": ""})
            else:
                self.answer({}, 200)

        def do_GET(self, body: bool = True) -> None:
            parts = self.path.split("?")[0].strip("/").split("/")
            if parts[0] == "api":
                name = "/".join(parts[2:4])
                listed = [{"rfilename": each} for each in files.get(name, {})]
                if "tree" in parts:
                    tree = [
                        {"type": "file", "path": each, "size": len(data), "oid": "b" * 40}
                        for each, data in files.get(name, {}).items()
                    ]
                    self.answer(tree)
                    return
                self.answer({"id": name, "sha": COMMIT, "siblings": listed, "private": False,
                             "tags": [], "downloads": 0})  # fmt: skip
                return
            name, file = "/".join(parts[:2]), "/".join(parts[4:])
            data = files.get(name, {}).get(file)
            if data is None:
                self.answer({"error": "Entry not found"}, 404)
                return
            self.send_response(200)
            self.send_header("ETag", f'"{hashlib.sha1(data).hexdigest()}"')
            self.send_header("X-Repo-Commit", COMMIT)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if body:
                self.wfile.write(data)

        def do_HEAD(self) -> None:
            self.do_GET(body=False)

    return Handler


@contextmanager
def local_hub() -> Iterator[tuple[str, dict[str, dict[str, bytes]]]]:
    """Serve until the block ends; give its address and its repositories: name → file → bytes."""
    files: dict[str, dict[str, bytes]] = {}
    server = ThreadingHTTPServer(("127.0.0.1", 0), make_handler(files))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", files
    finally:
        server.shutdown()
        server.server_close()
