from __future__ import annotations

import os
import sqlite3
import threading
import time
from pathlib import Path

import pytest

from depthpde.records.index.entry import summarize
from depthpde.records.index.store import (
    FOLDER,
    FORGOTTEN_AFTER,
    IndexRow,
    Store,
    open_store,
    unpack,
)
from depthpde.records.record import read_record


def a_row(results: Path, *, signature: str = "one") -> IndexRow:
    record = read_record(sorted((results / "runs").iterdir())[0])
    entry = summarize(record)
    return IndexRow(
        entry.id,
        signature,
        entry,
        "",
        (("probe.json", "why"),),
        b'{"a": 1}',
        b"[[1, 2.5]]",
        b'{"b": 2}',
    )


def test_what_is_put_is_read_again(results: Path) -> None:
    row, store = a_row(results), open_store(results)
    broken = IndexRow("broken", "two", None, "no record")
    store.put([row, broken])
    again = {each.id: each for each in open_store(results).read()}
    assert again[row.id].entry == row.entry
    assert again[row.id].parts == row.parts
    assert again["broken"] == broken
    assert [unpack(each) for each in store.files(row.id, "one")] == [{"a": 1}, [[1, 2.5]], {"b": 2}]
    assert store.probe(row.id, "one") == {"b": 2}
    assert store.curve(row.id, "one") == [[1, 2.5]]
    first, second = (IndexRow(name, "one", row.entry) for name in ("a", "b"))
    store.put([first, second])
    lines = [each.entry.trivial for each in open_store(results).read() if each.entry]
    assert len({id(each) for each in lines}) == 1, "runs that agree share their trivial lines"


@pytest.mark.parametrize("text", ['"é"', '"ascii"', '"' + 300 * "é" + '"', '"' + 300 * "a" + '"'])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_files_of_any_size_and_encoding_are_kept(results: Path, text: str, encoding: str) -> None:
    row, store = a_row(results)._replace(probe=text.encode(encoding)), open_store(results)
    store.put([row])
    assert store.probe(row.id, "one") == text.strip('"')


def test_a_record_of_another_signature_is_not_given(results: Path) -> None:
    row, store = a_row(results), open_store(results)
    store.put([row])
    assert store.files(row.id, "another") == (None, None, None)
    assert store.probe("nobody", "one") is None
    store.put([], gone=[row.id])
    assert store.read() == []


def test_a_batch_is_written_whole_or_not_at_all(results: Path) -> None:
    row, store = a_row(results), open_store(results)
    no_entry = IndexRow(None, "two", None, "why")  # type: ignore[arg-type]
    with pytest.raises(sqlite3.IntegrityError):
        store.put([row, no_entry])
    assert store.read() == []


def test_one_in_memory_leaves_no_file(results: Path) -> None:
    row, store = a_row(results), open_store(None)
    store.put([row])
    assert unpack(store.files(row.id, "one")[0]) == {"a": 1}
    assert store.is_there
    assert not (results / FOLDER).exists()


def test_a_writer_waits_for_another_and_then_writes(results: Path) -> None:
    row, store = a_row(results), open_store(results)
    assert store.path is not None
    other = sqlite3.connect(store.path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    threading.Timer(0.3, lambda: other.execute("COMMIT")).start()
    store.put([row])
    assert [each.id for each in store.read()] == [row.id]
    other.close()


def test_machines_have_files_of_their_own_and_those_long_unused_are_removed(results: Path) -> None:
    store = open_store(results)
    assert store.path is not None
    fresh, old = (store.path.with_name(f"{name}.sqlite") for name in ("fresh", "old"))
    for path in (fresh, old):
        path.write_text("")
    long_ago = time.time() - FORGOTTEN_AFTER - 60
    os.utime(old, (long_ago, long_ago))
    open_store(results)
    assert fresh.exists()
    assert not old.exists()


def test_one_of_another_version_is_refused_so_that_it_is_made_anew(results: Path) -> None:
    store = open_store(results)
    assert store.path is not None
    with sqlite3.connect(store.path) as other:
        other.execute("UPDATE about SET format = 'older'")
    with pytest.raises(sqlite3.DatabaseError, match="must be of format 4 depthpde"):
        Store(store.path)
    assert open_store(results).path == store.path
