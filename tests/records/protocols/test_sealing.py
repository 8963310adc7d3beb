"""A protocol is laid down once, by one process, and a changed one is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from depthpde.records.protocols.protocol import Look, PlannedContrast, StudyProtocol
from depthpde.records.protocols.sealing import changes, seal, sealed

PROTOCOL = StudyProtocol(
    name="medium",
    question="?",
    tuning_seeds=(200,),
    test_seeds=(100,),
    rates=(1e-3,),
    endpoints=("accuracy",),
    contrasts=(PlannedContrast(variant="a", against="b", endpoint="accuracy"),),
    looks=(Look(seeds=1, p=0.05),),
)


def test_a_protocol_is_laid_down_once_and_read_back(tmp_path):
    assert sealed(tmp_path, "medium") is None
    first = seal(tmp_path, PROTOCOL, now=5.0)
    path = tmp_path / "protocols" / "medium.json"
    before = path.read_bytes()
    assert seal(tmp_path, PROTOCOL) == first == sealed(tmp_path, "medium")
    assert (first.protocol, first.digest, first.since) == (PROTOCOL, PROTOCOL.digest, 5.0)
    assert path.read_bytes() == before


def test_a_protocol_that_was_changed_is_refused_and_its_changes_named(tmp_path):
    seal(tmp_path, PROTOCOL)
    changed = replace(PROTOCOL, rates=(2e-3,), stopping="later")
    assert changes(PROTOCOL, changed) == ["rates", "stopping"]
    with pytest.raises(ValueError, match=r"differs in rates, stopping; .*new name"):
        seal(tmp_path, changed)
    seal(tmp_path, replace(changed, name="medium-2"))


RACE = """
import json, sys
from pathlib import Path
from depthpde.records.protocols.protocol import StudyProtocol
from depthpde.records.protocols.sealing import seal
values = json.loads(sys.argv[2])
protocols = [StudyProtocol.from_dict(values | {"name": f"p{k}"}) for k in range(40)]
print("ready", flush=True)
sys.stdin.readline()
for each in protocols:
    try:
        seal(Path(sys.argv[1]), each)
    except ValueError as error:
        assert "differs in rates" in str(error), error
        print(0)
    else:
        print(1)
"""


def test_of_two_processes_with_different_protocols_of_one_name_one_is_refused(tmp_path):
    asked = [PROTOCOL.to_dict(), replace(PROTOCOL, rates=(2e-3,)).to_dict()]
    both = [
        subprocess.Popen(
            [sys.executable, "-c", RACE, str(tmp_path), json.dumps(values)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for values in asked
    ]
    assert [each.stdout.readline() for each in both] == ["ready\n"] * 2
    for each in both:
        each.stdin.write("go\n")
        each.stdin.flush()
    laid = [list(map(int, each.communicate(timeout=60)[0].split())) for each in both]
    assert [sum(pair) for pair in zip(*laid, strict=True)] == [1] * 40
    for k, (first, _) in enumerate(zip(*laid, strict=True)):
        there = sealed(tmp_path, f"p{k}").protocol
        assert list(there.rates) == asked[1 - first]["rates"]


def test_a_file_that_was_edited_or_torn_is_refused(tmp_path):
    seal(tmp_path, PROTOCOL)
    path = tmp_path / "protocols" / "medium.json"
    values = json.loads(path.read_text())
    values["protocol"]["rates"] = [2e-3]
    path.write_text(json.dumps(values))
    with pytest.raises(ValueError, match="it was edited"):
        sealed(tmp_path, "medium")
    path.write_text("{")
    with pytest.raises(ValueError, match="cannot be read"):
        seal(tmp_path, PROTOCOL)
