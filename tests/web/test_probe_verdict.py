from __future__ import annotations

import dataclasses
from pathlib import Path

from depthpde.records.record import Record, read_record
from depthpde.web.diagnosis import NOTHING
from depthpde.web.probe_verdict import probe_verdict

RESULTS = Path(__file__).parents[2] / "results"


def a_record() -> Record:
    return read_record(next(iter(sorted((RESULTS / "runs").glob("*/probe.json")))).parent)


def with_probe(record: Record, probe: object) -> Record:
    made = dataclasses.replace(record)
    made.stored["probe.json"] = lambda: type("R", (), {"value": probe, "broken": None})()
    return made


def test_a_finished_run_is_judged_by_its_probe() -> None:
    record = a_record()
    found = probe_verdict(record)
    about = {each.about: each.word for each in found.verdicts}
    assert {"representational drift", "rank collapse", "over-smoothing"} <= about.keys()
    assert about["entropy collapse"] == "not measured"
    assert found.update == (record.result or {})["update"]


def test_what_is_ill_comes_first_with_its_evidence() -> None:
    record = a_record()
    output = record.keep("probe.json", lambda: None)
    assert output is None
    blocks = record.config["model"]["blocks"]
    depth = {
        "drift.centred_cosine": [1.0] * (blocks + 1), "drift.step_centred_cosine": [1.0] * blocks,
        "rank.residual": [1.0, *[1e-6] * blocks], "energy.smoothness": [1.0] * (blocks + 1),
        "gradient.amplification": [1.0] * (blocks + 1), "gradient.stream": [1.0] * (blocks + 1),
        "drift.attention_share": [0.5] * blocks, "drift.ffn_share": [0.5] * blocks,
    }  # fmt: skip
    found = probe_verdict(with_probe(record, {"depth": depth}))
    assert (found.verdicts[0].word, found.verdicts[0].about) == ("ill", "rank collapse")
    assert "tokens differ by 1e-06" in found.verdicts[0].evidence


def test_a_probe_of_another_form_gives_no_verdict() -> None:
    for probe in ({}, {"depth": 3}, {"depth": {"rank.residual": ["a"]}}):
        assert probe_verdict(with_probe(a_record(), probe)) == NOTHING
