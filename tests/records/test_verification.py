"""`verify` finds what was changed, names it, and counts what it cannot check."""

from __future__ import annotations

import json
import os

import pytest

from depthpde.files import write_json
from depthpde.records.integrity.checksums import seal
from depthpde.records.verification import verify

NAMES = ("config.json", "metrics.jsonl", "predictions.u8", "model/weights")
BEST = {"accuracy": 50.0, "loss": 1.0, "update": 4}


def make(results, name, *, checked=True, result=True):
    """Write a record."""
    place = results / "runs" / name
    (place / "model").mkdir(parents=True)
    config = {"task": "text-mini", "seed": 3}
    write_json(place / "config.json", {"format": 1, "id": name, "config": config})
    look = {"kind": "validation", "update": 4, "accuracy": 50.0}
    (place / "metrics.jsonl").write_text(json.dumps(look) + "\n")
    (place / "predictions.u8").write_bytes(bytes(4))
    (place / "model" / "weights").write_bytes(bytes(1000))
    test = {"accuracy": 50.0, "correct": 2, "targets": 4}
    output = {"format": 1, "status": "done", "test": test, "validation": BEST}
    if result:
        write_json(place / "result.json", seal(place, output, NAMES) if checked else output)
    return place


def test_what_is_whole_is_told_from_what_cannot_be_checked(tmp_path):
    make(tmp_path, "a" * 16)
    make(tmp_path, "b" * 16, checked=False)
    make(tmp_path, "c" * 16, result=False)
    found = verify(tmp_path)
    assert (found.whole, found.without_checksums) == (("a" * 16,), ("b" * 16,))
    assert (found.unfinished, found.without_weights) == (("c" * 16,), ())
    assert not found.broken


def _flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def _edit_accuracy(path):
    output = json.loads(path.read_text())
    output["test"]["accuracy"] = 95.65
    write_json(path, output)


def _edit_best(path):
    output = json.loads(path.read_text())
    output["validation"]["accuracy"] = 99.0
    write_json(path, output)


@pytest.mark.parametrize(
    ("name", "spoil", "checked", "word"),
    [
        ("model/weights", _flip, True, "SHA-256"),
        ("predictions.u8", _flip, True, "SHA-256"),
        ("config.json", _flip, True, "config.json"),
        ("metrics.jsonl", lambda path: os.truncate(path, 9), True, "9"),
        ("predictions.u8", lambda path: os.truncate(path, 3), True, "4 bytes, got 3"),
        ("result.json", _edit_accuracy, True, "checksum"),
        ("result.json", _edit_accuracy, False, "50 for 2 of 4, got 95.65"),
        ("result.json", _edit_best, False, "where the curve has 50.0"),
        ("metrics.jsonl", lambda path: os.truncate(path, 0), False, "where the curve has None"),
        ("predictions.u8", lambda path: os.truncate(path, 3), False, "4 predictions, got 3"),
        ("probe.json", lambda path: path.write_text("{"), False, "JSON"),
    ],
)
def test_every_corruption_is_found_and_named(tmp_path, name, spoil, checked, word):
    make(tmp_path, "b" * 16)
    spoil(make(tmp_path, "a" * 16, checked=checked) / name)
    found = verify(tmp_path)
    assert found.whole == ("b" * 16,)
    (broken,) = found.broken
    assert str(broken.path) == f"runs/{'a' * 16}"
    assert word in broken.reason
    assert str(tmp_path) not in broken.reason


def test_committed_records_hold_what_can_be_recomputed(committed):
    from records.conftest import RESULTS

    found = verify(RESULTS)
    assert not found.broken
    assert set(found.without_checksums) | set(found.whole) == set(committed[1])
