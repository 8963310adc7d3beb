"""ListOps: nested MIN, MAX, MED and SM over digits; the label is the value of the whole.

    [MAX 4 3 [MIN 2 3 ] 1 0 [MED 1 5 8 9 2 ] ]   →   5

Trees follow the grammar of Long Range Arena: a node above depth 10 is an operator with
probability 1/4 and 2 … 10 arguments, else a digit; a tree is kept if 500 < length < 2000. The
released files were drawn without a seed and cannot be drawn again; ``listops-official`` reads
them. Accuracy moves in steps, so the trivial baselines stand in every manifest.

With that grammar a small model stays at what the first symbol tells, however short the trees.
Those of ``listops-mini`` are flatter, with more operators and fewer arguments: a value depends on
more than the root, and a small model gets to read some of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from depthpde.data.protocol import ValidationSource
from depthpde.data.ragged import Ragged
from depthpde.data.source import Source
from depthpde.data.task import Request, Task
from depthpde.data.writer import Array, Writer
from depthpde.errors import check_range
from depthpde.seeds import derive

WORDS = (*"0123456789", "[MIN", "[MAX", "[MED", "[SM", "]")
RELEASE = Source(
    name="the Long Range Arena release",
    layout="listops-1000/basic_train.tsv, basic_val.tsv, basic_test.tsv",
    url="https://github.com/google-research/long-range-arena (lra_release.gz)",
    patterns=("basic_train.tsv",),
)
_ATTEMPTS = 2048
_MAX_ARGUMENTS = 64
_MAX_DEPTH = 256


@dataclass(frozen=True, kw_only=True, slots=True)
class Grammar:
    """The law of the trees, and which of them are kept."""

    lengths: tuple[int, int]
    """Least and greatest number of symbols kept."""
    operator_share: float = 0.25
    """Probability that a node above the greatest depth is an operator."""
    max_depth: int = 10
    """Greatest depth; the root has depth 1, and nodes there are digits."""
    max_arguments: int = 10
    """Greatest number of arguments of an operator; the least is 2."""

    def __post_init__(self) -> None:
        """Refuse a law by which no tree could be kept, or be evaluated."""
        check_range("operator_share", self.operator_share, 0.0, 1.0)
        check_range("max_depth", self.max_depth, 2, _MAX_DEPTH)
        check_range("max_arguments", self.max_arguments, 2, _MAX_ARGUMENTS)
        least, greatest = self.lengths
        if not 1 <= least <= greatest:
            raise ValueError(f"`lengths` must be 1 <= least <= greatest, got {self.lengths}")

    @property
    def law(self) -> tuple[float, int, int]:
        """The numbers in the order the kernels take them."""
        return self.operator_share, self.max_depth, self.max_arguments


LRA = Grammar(lengths=(501, 1999))
MINI = Grammar(lengths=(32, 256), operator_share=0.5, max_depth=4, max_arguments=5)


def generate(
    count: int, seed: int, *, grammar: Grammar = LRA, workers: int = 1
) -> tuple[Ragged, Array]:
    """Draw distinct expressions and their values.

    Trees are numbered; those of the wanted lengths are kept in the order of their numbers and
    duplicates dropped, so a larger count only adds expressions at the end.

    Args:
        count: Expressions wanted.
        seed: Seed of the stream.
        grammar: The law of the trees.
        workers: Threads; the result does not depend on it.
    """
    key = derive(seed, "listops", *grammar.lengths)
    seen: set[bytes] = set()
    tokens, sizes, values = [], [], []
    for symbols, found in _harvests(key, grammar, workers):
        ends = np.cumsum(found[:, 0])
        for end, (size, value) in zip(ends, found, strict=True):
            piece = symbols[end - size : end]
            mark = hashlib.blake2b(piece.data, digest_size=16).digest()
            if mark in seen:
                continue
            seen.add(mark)
            tokens.append(piece)
            sizes.append(size)
            values.append(value)
            if len(sizes) == count:
                joined = Ragged(np.concatenate(tokens), np.array(sizes, dtype=np.int64))
                return joined, np.array(values, dtype=np.uint8)
    raise AssertionError("the stream of trees has no end")


def read_tsv(path: Path) -> tuple[Ragged, Array]:
    """Read a file of the release, and check every label by evaluating its expression.

    The file has the header ``Source<TAB>Target`` and one expression and value a line.
    """
    from depthpde.data.recipes.listops_trees import tokenise

    tokens, sizes, labels = [], [], []
    with path.open("rb") as file:
        header = file.readline().rstrip(b"\r\n")
        if header != b"Source\tTarget":
            raise ValueError(
                f"{path} must start with the header 'Source<TAB>Target', got {header[:60]!r}; "
                "take the file of the release"
            )
        for number, line in enumerate(file, start=2):
            expression, label = _fields(path, number, line)
            room = np.empty(len(expression), dtype=np.uint8)
            size = tokenise(np.frombuffer(expression, dtype=np.uint8), room)
            if size < 0:
                near = expression[-1 - size : 19 - size]
                raise ValueError(f"{path} line {number} has no ListOps symbol at {near!r}")
            if (value := value_of(room[:size])) != label:
                raise ValueError(
                    f"{path} line {number} has the label {label}, but its expression "
                    f"{'is malformed' if value is None else f'evaluates to {value}'}"
                )
            tokens.append(room[:size])
            sizes.append(size)
            labels.append(label)
    if not sizes:
        raise ValueError(f"{path} holds no expressions; take the file of the release")
    joined = Ragged(np.concatenate(tokens), np.array(sizes, dtype=np.int64))
    return joined, np.array(labels, dtype=np.uint8)


def value_of(symbols: Array) -> int | None:
    """Return the value of one expression, or None if it is not one."""
    from depthpde.data.recipes.listops_trees import evaluate

    values = np.zeros((_MAX_DEPTH, _MAX_ARGUMENTS), dtype=np.int64)
    value = evaluate(symbols, values, np.zeros((_MAX_DEPTH, 2), dtype=np.int64))
    return value if value >= 0 else None


def baselines(expressions: Ragged, labels: Array) -> dict[str, float]:
    """Return the accuracy (%) of what needs no reading of the tree below its root.

    ``majority``: the commonest label. ``root_operator``: the commonest label for the first
    token. ``root_digits``: MED and SM of the root's own digits, MIN and MAX as before (they are
    mostly 0 and 9). ``root_applied``: any root operator applied to its own digits.
    """
    from depthpde.data.recipes.listops_trees import MAX, MED, MIN, SM, literals

    facts = np.zeros((len(labels), 2), dtype=np.int64)
    literals(expressions.tokens, expressions.offsets, facts)
    operator, applied = facts[:, 0], facts[:, 1]
    common = {
        each: np.bincount(labels[operator == each], minlength=10).argmax()
        for each in (MIN, MAX, MED, SM)
    }
    by_root = np.array([common.get(int(each), 0) for each in operator])
    digits = np.where((operator >= MED) & (applied >= 0), applied, by_root)
    guesses = {
        "majority": np.bincount(labels).argmax(),
        "root_operator": by_root,
        "root_digits": digits,
        "root_applied": np.where(applied >= 0, applied, by_root),
    }
    return {name: round(100 * float((g == labels).mean()), 2) for name, g in guesses.items()}


def recipe(task: Task, request: Request, writer: Writer) -> None:
    """Generate a ListOps task: test first, then validation, then train."""
    grammar = MINI if task.mini else replace(LRA, lengths=(LRA.lengths[0], task.length - 1))
    total = sum(task.splits.values())
    request.log(f"{task.name}: growing {total:,} trees")
    expressions, labels = generate(total, request.seed, grammar=grammar, workers=request.workers)
    writer.facts["baselines"] = baselines(expressions, labels)
    writer.facts["grammar"] = {name: getattr(grammar, name) for name in Grammar.__slots__}
    start = 0
    for split in reversed(list(task.splits)):
        part = np.arange(start, start + task.splits[split])
        start += len(part)
        _write(writer, request, task, split, expressions.take(part), labels[part])


def official_recipe(task: Task, request: Request, writer: Writer) -> None:
    """Read the three files of the release."""
    assert request.rules.validation is ValidationSource.GIVEN, "the release has its own validation"
    for split, name in (("train", "train"), ("validation", "val"), ("test", "test")):
        path = RELEASE.find(request.data, [f"basic_{name}.tsv"], task=task.name)
        request.log(f"{task.name}: reading {path}")
        expressions, labels = read_tsv(path)
        if request.check:
            RELEASE.check_count(str(path), task.splits[split], len(labels))
        writer.add_source(path)
        if split == "train":
            writer.facts["baselines"] = baselines(expressions, labels)
        _write(writer, request, task, split, expressions, labels)


def decode(symbols: Array) -> str:
    """Write an expression in words, without the grouping parentheses."""
    return " ".join(WORDS[symbol] for symbol in symbols)


def _write(
    writer: Writer, request: Request, task: Task, split: str, expressions: Ragged, labels: Array
) -> None:
    if request.rules.end:
        expressions = expressions.ended(task.length)
    writer.append(split, expressions.tokens, expressions.lengths, labels)


def _harvests(key: int, grammar: Grammar, workers: int) -> Iterator[tuple[Array, Array]]:
    """Yield the trees kept of one block of numbers after another, blocks grown in parallel."""
    from depthpde.data.recipes.listops_trees import harvest

    def block(number: int) -> tuple[Array, Array]:
        symbols = np.empty(_ATTEMPTS * grammar.lengths[1], dtype=np.uint8)
        found = np.empty((_ATTEMPTS, 2), dtype=np.int64)
        first = number * _ATTEMPTS
        kept = harvest(
            np.uint64(key), first, _ATTEMPTS, grammar.law, *grammar.lengths, symbols, found
        )
        return symbols[: int(found[:kept, 0].sum())].copy(), found[:kept]

    first = 0
    with ThreadPoolExecutor(workers) as pool:
        while True:
            yield from pool.map(block, range(first, first + 4 * workers))
            first += 4 * workers


def _fields(path: Path, number: int, line: bytes) -> tuple[bytes, int]:
    columns = line.rstrip(b"\r\n").split(b"\t")
    if len(columns) != 2:
        raise ValueError(
            f"{path} line {number} must have 2 columns parted by a tab, got {len(columns)}; "
            "take the file of the release"
        )
    if len(columns[1]) != 1 or not columns[1].isdigit():
        raise ValueError(f"{path} line {number} must have a label 0 … 9, got {columns[1][:20]!r}")
    return columns[0], int(columns[1])
