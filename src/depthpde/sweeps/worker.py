"""A worker of the local pool: runs come in as lines of JSON, ends go out the same way.

    → {"folders": …}            once
    → {"run": …RunConfig}       compute it
    ← {"run": id, "end": …, "why": …}

When the input closes, the pool is gone: the worker saves what it computes and ends.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

AUTOGROUP = Path("/proc/self/autogroup")
"""Where Linux keeps how nice a session is."""


def main() -> int:
    """Serve until the input closes or SIGINT comes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nice", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    step_back(options.nice)
    # The protocol keeps the output for itself: what a library prints goes to the log.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    requests: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
    try:
        threading.Thread(target=_listen, args=(requests,), daemon=True).start()
        _serve(requests, answers, options.device)
    except KeyboardInterrupt:
        pass  # stopped while there was nothing to save
    os._exit(0)  # the listener may still hold the input, which a normal exit would wait for


def step_back(nice: int) -> None:
    """Let others on the machine go first.

    A worker is a session of its own, and Linux shares its processors among sessions first
    (autogroup): how nice a process is counts only inside of one, so the session is made so too.

    Args:
        nice: By how much, 0 to 19, beyond what was inherited.
    """
    reached = os.nice(nice)
    if reached > 0:
        with suppress(OSError):  # another system, or a kernel that shares otherwise
            AUTOGROUP.write_text(str(reached))


def _listen(requests: queue.SimpleQueue[dict[str, Any] | None]) -> None:
    for line in sys.stdin:
        requests.put(json.loads(line))
    requests.put(None)
    os.kill(os.getpid(), signal.SIGINT)


def _serve(
    requests: queue.SimpleQueue[dict[str, Any] | None], answers: TextIO, device: str
) -> None:
    from depthpde.runs.run import RunConfig
    from depthpde.sweeps.executor import Folders, run_attempt

    message = requests.get()
    if message is None:
        return
    folders = Folders.from_dict(message["folders"])
    while (message := requests.get()) is not None:
        run = RunConfig.from_dict(message["run"])
        ended = run_attempt(run, folders, device=device, log=_log)
        answer = {"run": ended.run, "end": ended.end.value, "why": ended.why}
        print(json.dumps(answer), file=answers, flush=True)


def _log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
