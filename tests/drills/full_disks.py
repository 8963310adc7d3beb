"""A run on a disk that takes no more, by bytes and by files; then there is room, and it goes on.

    unshare -m python -m drills.full_disks FOLDER PREPARED      prints what came of it, as JSON

The disk is a tmpfs in a mount namespace of this process, so nothing stays mounted. Its size is
what a whole record takes, cut down in steps from nothing to nearly all.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from depthpde.records.record import State, read_record
from depthpde.runs.execute import execute
from drills.killed_runs import chosen_run
from drills.same_records import contents, difference

ROOM = "size=64m,nr_inodes=10000"


def disk(place: Path, options: str) -> None:
    """Give the disk another size; it keeps what it holds."""
    subprocess.run(["mount", "-o", f"remount,{options}", str(place)], check=True)


def fill(place: Path, options: str, prepared: Path, want: dict[str, bytes]) -> tuple[str, str]:
    """Run into a full disk, make room, run again; return what was told and what was wrong."""
    results = place / "results"
    results.mkdir()
    disk(place, options)
    try:
        execute(chosen_run(), results, prepared=prepared, log=lambda line: None)
        printed = ""
    except OSError as error:
        printed = str(error)
    status = results / "runs" / chosen_run().id / "status.json"
    state = read_record(status.parent).state if status.exists() else None
    if printed and state is State.RUNNING:
        return printed, "the status says that it still runs"
    if printed and not any(word in printed.lower() for word in ("disk", "space", "full")):
        return printed, f"the message names no disk: {printed}"
    disk(place, ROOM)
    execute(chosen_run(), results, prepared=prepared, log=lambda line: None)
    return printed, difference(results / "runs" / chosen_run().id, want)


def main(folder: Path, prepared: Path) -> None:
    """Try twelve sizes and eight numbers of files."""
    whole, place = folder / "whole", folder / "disk"
    execute(chosen_run(), whole, prepared=prepared, log=lambda line: None)
    want = contents(whole / "runs" / chosen_run().id)
    pages = sum(4096 * (1 + len(each) // 4096) for each in want.values())
    sizes = [f"size={4096 + round(share * pages / 4096) * 4096}" for share in SHARES]
    counts = [f"nr_inodes={number}" for number in (3, 4, 5, 6, 7, 8, 10, 12)]
    place.mkdir()
    wrong, full = [], 0
    for options in [*sizes, *counts]:
        subprocess.run(["mount", "-t", "tmpfs", "-o", ROOM, "none", str(place)], check=True)
        printed, output = fill(place, options, prepared, want)
        full += bool(printed)
        subprocess.run(["umount", str(place)], check=True)
        wrong += [f"{options}: {output}"] if output else []
    print(json.dumps({"sizes": len(sizes), "counts": len(counts), "full": full, "wrong": wrong}))


SHARES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2)

if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
