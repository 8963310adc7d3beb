"""Everything that can happen to the files of a real record, with the verdict that it must get.

The slice of every test run is tests/records/test_verification.py.
"""

from __future__ import annotations

import json
import os
import shutil

import pytest

from depthpde.data.catalog import load
from depthpde.records.verification import verify
from depthpde.runs.execute import execute

SEALED = (
    "config.json", "environment.json", "metrics.jsonl", "model/config.json",
    "model/model.safetensors", "predictions.u8", "probe.json",
)  # fmt: skip


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def append(path):
    path.write_bytes(path.read_bytes() + b" ")


def garbage(path):
    path.write_bytes(os.urandom(path.stat().st_size))


def halve(path):
    os.truncate(path, path.stat().st_size // 2)


def empty(path):
    os.truncate(path, 0)


SPOILS = (flip, append, garbage, halve, empty, os.remove)


def edit(**changes):
    """Change numbers of a result, and leave its checksum as it was."""

    def spoil(path):
        output = json.loads(path.read_text())
        for name, value in changes.items():
            place, _, key = name.rpartition("__")
            (output[place] if place else output)[key] = value
        path.write_text(json.dumps(output))

    return spoil


EDITS = (
    edit(test__accuracy=95.65), edit(test__correct=47), edit(update=7), edit(parameters=1),
    edit(checksums__numbers="0" * 64), edit(checksums={"files": {}}), edit(checksums=3),
    edit(status="running"),
)  # fmt: skip


@pytest.mark.drill
def test_fifty_corruptions_of_a_real_record_get_their_verdicts(run, prepared, tmp_path, tally):
    execute(run, tmp_path / "whole", prepared=prepared)
    whole = tmp_path / "whole" / "runs" / run.id
    assert verify(tmp_path / "whole").whole == (run.id,)
    cases = [(name, spoil) for name in SEALED for spoil in SPOILS]
    cases += [("result.json", spoil) for spoil in (*EDITS, flip, halve, empty)]
    unseen = []
    for number, (name, spoil) in enumerate(cases):
        results = tmp_path / str(number)
        shutil.copytree(whole, results / "runs" / run.id)
        spoil(results / "runs" / run.id / name)
        found = verify(results)
        if len(found.broken) != 1 or found.whole:
            unseen.append((name, getattr(spoil, "__name__", "edit"), found))
    assert unseen == []
    tally("Files of a record flipped, cut, edited, removed", len(cases), "`verify` names each")

    light = tmp_path / "light"
    shutil.copytree(whole, light / "runs" / run.id)
    shutil.rmtree(light / "runs" / run.id / "model")
    found = verify(light)
    assert (found.whole, found.without_weights, found.broken) == ((run.id,), (run.id,), ())
    os.remove(light / "runs" / run.id / "result.json")
    assert verify(light).unfinished == (run.id,)
    tally("Records copied without weights, or without a result", 2, "told as such, not as whole")


@pytest.mark.drill
def test_every_prepared_array_that_is_spoilt_is_refused(prepared, tmp_path, tally):
    names = [each.name for each in (prepared / "listops-mini").iterdir() if each.suffix != ".json"]
    tried = 0
    for name in names:
        for spoil in (flip, halve):
            out = tmp_path / f"{name}-{spoil.__name__}"
            shutil.copytree(prepared, out)
            spoil(out / "listops-mini" / name)
            with pytest.raises((ValueError, OSError), match=name):
                load("listops-mini", name.partition(".")[0], out=out)
            tried += 1
    assert tried >= 6
    tally("Prepared tokens and labels flipped or cut", tried, "refused on first use, by name")
