"""A headless Chromium, driven through its own DevTools protocol: no driver, no download."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from websockets.sync.client import connect

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
SWITCHES = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
    "--no-first-run", "--disable-extensions", "--disable-background-networking",
    "--hide-scrollbars", "--force-color-profile=srgb", "--remote-debugging-port=0",
    "--remote-allow-origins=*",
)  # fmt: skip
PATIENCE = 40.0
"""Seconds after which something that should have happened has not; the machine may be busy."""


class ProtocolError(Exception):
    """The browser could not do what it was asked, such as in a page that is being replaced."""


class Browser:
    """One window of one browser; remembers everything its console said."""

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            profile = stack.enter_context(
                tempfile.TemporaryDirectory(prefix="depthpde-chromium-", ignore_cleanup_errors=True)
            )
            process = stack.enter_context(
                subprocess.Popen(
                    [str(CHROMIUM), *SWITCHES, f"--user-data-dir={profile}", "about:blank"],
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
            )
            stack.callback(process.terminate)
            note = Path(profile) / "DevToolsActivePort"
            self._until(lambda: note.exists() and len(note.read_text().split()) == 2, "a start")
            port, path = note.read_text().split()
            address = f"ws://127.0.0.1:{port}{path}"
            self.socket = stack.enter_context(connect(address, max_size=None, proxy=None))
            self._attach()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def _attach(self) -> None:
        self.number, self.session = 0, None
        self.complaints: list[str] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        found = self.send("Target.attachToTarget", targetId=target, flatten=True)
        self.session = found["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **values: Any) -> dict[str, Any]:
        """Ask the browser for something and wait for its answer."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": values}
        if self.session is not None:
            message["sessionId"] = self.session
        self.socket.send(json.dumps(message))
        while True:
            output = json.loads(self.socket.recv(timeout=PATIENCE))
            if output.get("id") == self.number:
                if "error" in output:
                    raise ProtocolError(f"{method}: {output['error']['message']}")
                return output["result"]
            self._note(output)

    def open(self, address: str) -> None:
        """Go to an address and wait until its script has run; forgets older complaints."""
        self.complaints = []
        self.send("Page.navigate", url=address)
        self.wait(f"location.href.startsWith({json.dumps(address.split('?')[0])})")
        self.wait("document.readyState === 'complete'")

    def ask(self, expression: str) -> Any:
        """Evaluate an expression in the page."""
        found = self.send(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait(self, expression: str) -> None:
        """Wait until an expression is true in the page, or in the one that takes its place."""

        def holds() -> bool:
            try:
                return bool(self.ask(expression))
            except ProtocolError:
                return False

        self._until(holds, expression)

    def size(self, width: int, height: int) -> None:
        """Give the page the size of a screen."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip

    def paint(self, scheme: str) -> None:
        """Prefer "light" or "dark"."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.send("Emulation.setEmulatedMedia", features=[feature])

    def press(self, key: str) -> None:
        """Press one key."""
        codes = {"Tab": 9, "Enter": 13, "ArrowRight": 39, "ArrowLeft": 37, "End": 35, "Home": 36}
        for kind in ("keyDown", "keyUp"):
            self.send(
                "Input.dispatchKeyEvent",
                type=kind, key=key, code=key, windowsVirtualKeyCode=codes[key],
            )  # fmt: skip

    def picture(self, path: Path) -> None:
        """Save what is seen as a PNG."""
        found = self.send("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(found["data"]))

    def _until(self, done: Any, what: str) -> None:
        end = time.monotonic() + PATIENCE
        while not done():
            assert time.monotonic() < end, f"waited {PATIENCE:g} s in vain for {what}"
            time.sleep(0.05)

    def _note(self, output: dict[str, Any]) -> None:
        method, values = output.get("method"), output.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.complaints.append(str(values["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and values["type"] in ("error", "warning"):
            self.complaints.append(str(values["args"]))
        elif method == "Log.entryAdded" and values["entry"]["level"] in ("error", "warning"):
            self.complaints.append(f"{values['entry']['text']} {values['entry'].get('url', '')}")
        elif method == "Page.javascriptDialogOpening":
            self.complaints.append(f"a dialog opened: {values['message']}")
