"""Records that a stranger could hand over: made from a true one by a seed, none like another.

Each is a run's folder with one or two files spoilt: values of a JSON replaced by what nobody can
count with or by markup and formulas, bytes that are no text, nesting without end, and files that
are pipes, devices, folders, links to elsewhere or ten gigabytes of nothing.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

FILES = ("config.json", "status.json", "result.json", "metrics.jsonl", "environment.json")
MARK = "zq7</td><script>alert(7)</script><img src=x onerror=alert(8)>"
"""Markup that a page must never hold as it is."""
FORMULA = "=cmd|'/c calc'!A1"
RAW = ("1e999", "-1e999", "1" + "0" * 400, "NaN", "Infinity", "1" + "0" * 5000, "[" * 5000)
"""Texts in the place of a value that Python would read, and could not count with."""
VALUES: tuple[Any, ...] = (
    MARK, FORMULA, "\\input{/etc/passwd}", "a\nb|c`d", "\x00\x1b[31m", "", None, True, -1, 10**18,
    1e308, -1e308, [], {}, [[]], {"a": {"b": [1]}}, "9" * 10_000, "../../etc/passwd", "\ud800",
)  # fmt: skip


def craft(true: Path, folder: Path, chance: random.Random) -> str:
    """Copy a run's folder and spoil it; return what was done."""
    shutil.copytree(true, folder)
    done = []
    for name in chance.sample(FILES, 1 + (chance.random() < 0.3)):
        how = chance.choice(WAYS) if chance.random() < 0.4 else replace_value
        how(folder / name, chance)
        done.append(f"{name}: {how.__name__}")
    return ", ".join(done)


def replace_value(path: Path, chance: random.Random) -> None:
    """Put something else in the place of one value of a JSON file."""
    lines = path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
    number = chance.randrange(len(lines))
    values = json.loads(lines[number])
    holder, key = chance.choice(_places(values))
    raw = chance.random() < 0.35
    holder[key] = "@RAW@" if raw else chance.choice(VALUES)
    lines[number] = json.dumps(values).replace('"@RAW@"', chance.choice(RAW))
    path.write_text("\n".join(lines) + "\n", errors="surrogatepass")


def _places(values: Any) -> list[tuple[Any, Any]]:
    """Return every place inside plain values where something stands."""
    found = []
    items = values.items() if isinstance(values, dict) else enumerate(values)
    for key, value in items:
        found.append((values, key))
        if isinstance(value, dict | list) and value:
            found += _places(value)
    return found


def cut(path: Path, chance: random.Random) -> None:
    """Keep the beginning."""
    os.truncate(path, chance.randrange(path.stat().st_size))


def bytes_only(path: Path, chance: random.Random) -> None:
    """Write what is no text."""
    path.write_bytes(chance.randbytes(200))


def nested(path: Path, chance: random.Random) -> None:
    """Nest without end."""
    path.write_text(chance.choice(("[", '{"a":')) * 100_000)


def pipe(path: Path, chance: random.Random) -> None:
    """Wait for ever."""
    path.unlink()
    os.mkfifo(path)


def device(path: Path, chance: random.Random) -> None:
    """Never end."""
    path.unlink()
    path.symlink_to(chance.choice(("/dev/zero", "/dev/full", "/dev/tty")))


def sparse(path: Path, chance: random.Random) -> None:
    """Ten gigabytes of nothing."""
    with path.open("wb") as stream:
        stream.truncate(10 * 2**30)


def a_folder(path: Path, chance: random.Random) -> None:
    """Stand a folder in the place of the file."""
    path.unlink()
    path.mkdir()


def elsewhere(path: Path, chance: random.Random) -> None:
    """Lead outside of the results."""
    path.unlink()
    path.symlink_to(chance.choice(("/etc/passwd", "/nowhere", ".", path.name)))


def gone(path: Path, chance: random.Random) -> None:
    """Take the file away."""
    path.unlink()


def plain(path: Path, chance: random.Random) -> None:
    """Write a JSON that is something else."""
    path.write_text(chance.choice(("null", "3", '"text"', "[]", "{}", "true")))


WAYS: tuple[Callable[[Path, random.Random], None], ...] = (
    cut, bytes_only, nested, pipe, device, sparse, a_folder, elsewhere, gone, plain,
)  # fmt: skip
