"""20 Newsgroups, split by date: which group was a message posted to?

Headers, signatures and quoted lines are removed by default: they name the group, the authors and
the thread, and a model that reads them learns to recognise people. ``newsgroups-raw`` keeps them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np

from depthpde.data.archive import members
from depthpde.data.ragged import ragged
from depthpde.data.source import Source, content_digest
from depthpde.data.splits import hold_out, stratified
from depthpde.data.task import Request, Task
from depthpde.data.writer import Array, Writer

NEWSGROUPS = Source(
    name="20 Newsgroups",
    layout="20news-bydate.tar.gz, or the folders 20news-bydate-train and 20news-bydate-test",
    url="http://qwone.com/~jason/20Newsgroups/",
    patterns=("20news-bydate-train/", "20news-bydate*.tar*"),
)
COUNTS = {"train": 11_314, "test": 7_532}
TOPICS = ("comp", "rec", "sci", "talk")
_NAME = re.compile(r"(?:.*/)?20news-bydate-(train|test)/([a-z.\-]+)/(\d+)")
_ATTRIBUTION = re.compile(
    rb"(writes in|writes:|wrote:|says:|said:|^In article|^Quoted from|^\||^>)", re.IGNORECASE
)
_RULE = re.compile(rb"^[\s\-_=*~]*$")


class Message(NamedTuple):
    """One posting."""

    group: str
    number: int
    content: bytes


def read_messages(path: Path, *, check: bool = True) -> dict[str, list[Message]]:
    """Read the postings of a folder or tar: split → messages by group and number.

    Args:
        path: A tar of the two folders, or the folder that holds them.
        check: Refuse another number of messages than the official 11,314 and 7,532.
    """
    found: dict[str, list[Message]] = {split: [] for split in COUNTS}
    for name, content in members(path, lambda name: _NAME.fullmatch(name) is not None):
        match = _NAME.fullmatch(name)
        assert match is not None, "only matching names are read"
        found[match[1]].append(Message(match[2], int(match[3]), content))
    for split, wanted in COUNTS.items():
        got = len(found[split])
        if not got or (check and got != wanted):
            raise ValueError(
                f"{path} must hold {wanted:,} messages in 20news-bydate-{split}, got {got:,}; "
                f"unpack the whole archive from {NEWSGROUPS.url}"
            )
        found[split].sort()
    return found


def find_messages(task: Task, request: Request, writer: Writer) -> dict[str, list[Message]]:
    """Find the archive or the folders beneath the data folder, and read them."""
    path = NEWSGROUPS.find(request.data, task=task.name)
    if path.is_dir():
        path = path.parent
    request.log(f"{task.name}: reading {path}")
    messages = read_messages(path, check=request.check)
    contents = (message.content for each in messages.values() for message in each)
    writer.add_source(path, content_sha256=content_digest(contents))
    return messages


def body(content: bytes) -> bytes:
    """Return a message without its headers, quoted lines and signature."""
    _, _, text = content.partition(b"\n\n")
    lines = [line for line in text.split(b"\n") if not _ATTRIBUTION.search(line)]
    return _without_signature(lines).strip()


def subject(content: bytes) -> bytes:
    """Return the subject of a message in lower case, without ``Re:`` and its like."""
    headers, _, _ = content.partition(b"\n\n")
    match = re.search(rb"^Subject:[ \t]*(.*)$", headers, re.MULTILINE | re.IGNORECASE)
    plain = match[1].strip().lower() if match else b""
    return re.sub(rb"^((re|fwd?)(\[\d+\])?:\s*)+", b"", plain)


def recipe(task: Task, request: Request, writer: Writer) -> None:
    """Read the messages, hold out validation, cut, and write."""
    messages = find_messages(task, request, writer)
    keep = task.name == "newsgroups-raw"
    names = sorted({message.group for message in messages["train"]})
    groups = {name: label for label, name in enumerate(names)}
    if task.mini:
        groups = {name: TOPICS.index(top) for name in names if (top := topic(name)) in TOPICS}
    if max(groups.values(), default=-1) + 1 != task.classes:
        raise ValueError(
            f"`classes` of {task.name} must be {task.classes}, got {len(set(groups.values()))} "
            f"groups of messages; unpack the whole archive from {NEWSGROUPS.url}"
        )
    writer.facts["class_names"] = list(TOPICS) if task.mini else names
    texts, labels = {}, {}
    for split, each in messages.items():
        kept = [message for message in each if message.group in groups]
        texts[split] = [m.content if keep else body(m.content) for m in kept]
        labels[split] = np.array([groups[m.group] for m in kept], dtype=np.uint8)
    writer.facts["empty_after_removal"] = sum(not text for each in texts.values() for text in each)
    for split, (name, part) in _division(task, request, labels).items():
        chosen = ragged([texts[name][index][: task.length] for index in part])
        writer.append(split, chosen.tokens, chosen.lengths, labels[name][part])


def topic(group: str) -> str:
    """Return the first part of a group's name, such as ``comp`` or ``sci``."""
    return group.split(".")[0]


def _division(
    task: Task, request: Request, labels: dict[str, Array]
) -> dict[str, tuple[str, Array]]:
    count, rule = task.splits["validation"], request.rules.validation
    rest, held = hold_out(labels["train"], count, rule, request.seed, task.name)
    test = np.arange(len(labels["test"]))
    if task.mini:
        wanted = task.splits["test"]
        _, test = stratified(labels["test"], wanted, request.seed, task.name, "test")
    return {"train": ("train", rest), "validation": ("train", held), "test": ("test", test)}


def _without_signature(lines: list[bytes]) -> bytes:
    """Cut at the last rule of dashes or blank line if what follows is short: a signature."""
    while lines and not lines[-1].strip():
        lines.pop()
    for back in range(1, min(8, len(lines) - 1) + 1):
        if _RULE.match(lines[-back]):
            return b"\n".join(lines[:-back])
    return b"\n".join(lines)
