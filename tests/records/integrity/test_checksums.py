"""What a disk, a copy or a hand changes in a finished record is noticed."""

from __future__ import annotations

import json
import os

import pytest

from depthpde.files import write_json
from depthpde.records.integrity.checksums import (
    check_count,
    check_file,
    check_numbers,
    check_sizes,
    seal,
    sealed_files,
)
from depthpde.records.record import read_record

NAME = "a" * 16
NAMES = ("config.json", "metrics.jsonl", "predictions.u8", "model/weights", "absent")


@pytest.fixture
def folder(tmp_path):
    """Write a finished record with its checksums."""
    place = tmp_path / "runs" / NAME
    (place / "model").mkdir(parents=True)
    config = {"task": "text-mini", "seed": 3}
    write_json(place / "config.json", {"format": 1, "id": NAME, "config": config})
    look = {"kind": "validation", "update": 4, "accuracy": 50.0}
    (place / "metrics.jsonl").write_text(json.dumps(look) + "\n")
    (place / "predictions.u8").write_bytes(bytes(4))
    (place / "model" / "weights").write_bytes(bytes(1000))
    result = {"format": 1, "status": "done", "seconds": 1.5, "update": 4}
    result |= {"test": {"accuracy": 50.0, "correct": 2, "targets": 4}}
    write_json(place / "result.json", seal(place, result, NAMES))
    return place


def flip(path):
    """Change one bit, keep the size."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def test_a_whole_record_is_read_and_says_that_it_is_checked(folder):
    record = read_record(folder)
    assert record.checked
    assert set(sealed_files(record.result)) == set(NAMES) - {"absent"}
    assert len(record.predictions()) == 4
    assert len(record.validations()) == 1


def test_edited_numbers_are_refused(folder):
    output = json.loads((folder / "result.json").read_text())
    for change in ({"seconds": 0.1}, {"update": 5}, {"notes": ["x"]}):
        write_json(folder / "result.json", output | change)
        with pytest.raises(ValueError, match=r"checksum.*of, got changed ones; copy"):
            read_record(folder)


def test_an_edited_list_of_files_is_refused(folder):
    output = json.loads((folder / "result.json").read_text())
    del output["checksums"]["files"]["metrics.jsonl"]
    write_json(folder / "result.json", output)
    with pytest.raises(ValueError, match="got changed ones"):
        read_record(folder)


@pytest.mark.parametrize("bad", [[], {"files": []}, {"files": {"../x": {}}}, {"files": {"a": 1}}])
def test_checksums_of_another_form_are_refused(folder, bad):
    with pytest.raises(ValueError, match="must hold checksums by file"):
        check_numbers(folder / "result.json", {"checksums": bad})


@pytest.mark.parametrize("name", ["metrics.jsonl", "predictions.u8", "model/weights"])
def test_a_file_that_was_cut_or_lost_is_noticed_without_reading_it(folder, name):
    os.truncate(folder / name, 1)
    with pytest.raises(ValueError, match=f"{name} must have .* bytes, got 1; copy"):
        read_record(folder)
    (folder / name).unlink()
    with pytest.raises(ValueError, match=f"{name} is missing, but has a checksum"):
        read_record(folder)


def test_a_record_may_be_copied_without_its_weights(folder):
    (folder / "model" / "weights").unlink()
    (folder / "model").rmdir()
    check_sizes(folder, read_record(folder).result)


@pytest.mark.parametrize("name", ["metrics.jsonl", "predictions.u8", "model/weights"])
def test_a_flipped_bit_is_noticed_when_the_file_is_used(folder, name):
    record = read_record(folder)
    check_file(folder, name, record.result)
    flip(folder / name)
    with pytest.raises(ValueError, match=r"must have the SHA-256 of its record, .*got another"):
        check_file(folder, name, record.result)


def test_a_reader_of_curves_and_predictions_checks_them(folder):
    record = read_record(folder)
    flip(folder / "predictions.u8")
    with pytest.raises(ValueError, match="SHA-256"):
        record.predictions()
    flip(folder / "metrics.jsonl")
    with pytest.raises(ValueError, match="SHA-256"):
        record.points()


def test_predictions_are_as_many_as_the_test_counts(tmp_path):
    path, test = tmp_path / "predictions.u8", {"targets": 4}
    check_count(path, test)  # not there
    path.write_bytes(bytes(3))
    check_count(path, {})  # nothing is counted
    check_count(path, test, bytes(4))
    with pytest.raises(ValueError, match=r"must hold 4 predictions, got 3; .*anew"):
        check_count(path, test)
    with pytest.raises(ValueError, match="got 2"):
        check_count(path, test, bytes(2))
