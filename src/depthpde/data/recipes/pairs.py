"""Real pairs at mini size: do two messages of 20 Newsgroups belong to one thread?

A stand-in for the two-tower setting on data that everybody can get, never to be called AAN, which
cannot be. A thread is what shares a subject; threads of one split do not occur in another. Half
of the pairs are of one thread; the others take their second message from another thread, drawn by
the same law, so that no single message tells the label.

Members of a thread quote each other. Quoted words are kept, but the marks in front of them and
the lines that say whom they are from are taken away, so that a quotation looks like its original
and what two messages share is not hidden behind how they quote.
"""

from __future__ import annotations

import re

import numpy as np

from depthpde.data.counter import bits, permutation
from depthpde.data.ragged import ragged
from depthpde.data.recipes.newsgroups import Message, find_messages, subject
from depthpde.data.task import Request, Task
from depthpde.data.writer import DOCUMENTS, Array, Writer
from depthpde.seeds import derive

_SHORTEST = 64
_VALIDATION_SHARE = 10
_LEAD_IN = re.compile(
    rb"(writes in|(writes|wrote|says|said)\W*$|(writes|wrote|says|said):|^\W*In (article|<)"
    rb"|^Quoted from)",
    re.IGNORECASE,
)
_QUOTE_MARKS = re.compile(rb"^(?:\s*(?:[A-Z]{0,3}>|[|:#}%]))+")


def pair_up(groups: list[list[int]], count: int, key: int) -> tuple[Array, Array]:
    """Draw pairs [count, 2] of members and their labels, 1 for two members of one group.

    Groups are drawn uniformly, then members uniformly, for either label.

    Args:
        groups: Member numbers, at least two in each group.
        count: Pairs wanted, an even number; labels alternate before they are shuffled.
        key: Key of the stream.
    """
    if len(groups) < 2:
        raise ValueError(f"`groups` must be at least 2 to draw pairs from, got {len(groups)}")
    pairs, labels = np.empty((count, 2), dtype=np.int64), np.arange(count) % 2
    draws = (bits(key, 4 * count) >> np.uint64(32)).astype(np.int64).reshape(count, 4).tolist()
    for each, (a, b, c, d) in enumerate(draws):
        one = a * len(groups) >> 32
        group = groups[one]
        first = b * len(group) >> 32
        if labels[each]:
            second = (first + 1 + (c * (len(group) - 1) >> 32)) % len(group)
            pairs[each] = group[first], group[second]
        else:
            other = groups[(one + 1 + (c * (len(groups) - 1) >> 32)) % len(groups)]
            pairs[each] = group[first], other[d * len(other) >> 32]
    order = permutation(derive(key, "pairs"), count)
    return pairs[order], labels[order].astype(np.uint8)


def words(content: bytes) -> bytes:
    """Return a message on one line, without its headers, lead-ins to quotations and their marks."""
    _, _, text = content.partition(b"\n\n")
    lines = [line for line in text.split(b"\n") if not _LEAD_IN.search(line)]
    return b" ".join(word for line in lines for word in _QUOTE_MARKS.sub(b"", line).split())


def recipe(task: Task, request: Request, writer: Writer) -> None:
    """Read the messages, gather threads, and draw pairs for each split."""
    messages = find_messages(task, request, writer)
    texts: list[bytes] = []
    threads = {split: _threads(each, texts) for split, each in messages.items()}
    seen = set(threads["train"])
    tests = [members for name, members in threads["test"].items() if name not in seen]
    rest, held = _held_out(list(threads["train"].values()), request.seed)
    documents = ragged([text[: task.length] for text in texts])
    writer.append(DOCUMENTS, documents.tokens, documents.lengths, None)
    for split, groups in (("train", rest), ("validation", held), ("test", tests)):
        key = derive(request.seed, task.name, split)
        pairs, labels = pair_up(groups, task.splits[split], key)
        writer.append_pairs(split, pairs, labels)
        writer.facts[f"{split}_threads"] = len(groups)


def _threads(messages: list[Message], texts: list[bytes]) -> dict[bytes, list[int]]:
    """Gather messages by subject, texts appended to the list; lone and tiny ones are left out."""
    found: dict[bytes, list[bytes]] = {}
    for message in messages:
        name, text = subject(message.content), words(message.content)
        if name and len(text) >= _SHORTEST:
            found.setdefault(name, []).append(text)
    threads: dict[bytes, list[int]] = {}
    for name, members in sorted(found.items()):
        if len(members) > 1:
            threads[name] = list(range(len(texts), len(texts) + len(members)))
            texts += members
    return threads


def _held_out(groups: list[list[int]], seed: int) -> tuple[list[list[int]], list[list[int]]]:
    order = permutation(derive(seed, "threads"), len(groups))
    cut = max(2, len(groups) // _VALIDATION_SHARE)
    return [groups[each] for each in order[cut:]], [groups[each] for each in order[:cut]]
