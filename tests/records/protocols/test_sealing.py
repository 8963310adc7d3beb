import json
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
