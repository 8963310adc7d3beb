"""Findings come back as they were written, and read as a person would tell them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from depthpde.records.findings import (
    Findings,
    JudgedClaim,
    check_scale,
    read_findings,
    rows_markdown,
    typeset,
)
from depthpde.records.statistics.power import one_task_effect
from depthpde.records.verdicts import Outcome

FOUND = Findings(
    name="placement",
    question="Where?",
    scale="mini",
    claims=(
        JudgedClaim(
            claim="It helps after the embedding.",
            finding="+1.60 points over five tasks.",
            verdict=Outcome.SMALLER,
            n=30,
            effect=1.6,
            unit="points",
            interval=(0.9, 2.3),
            p=0.03,
            least=0.7,
        ),
        JudgedClaim(
            claim="It is free.",
            finding="Nobody looked.",
            verdict=Outcome.INCONCLUSIVE,
            n=0,
            closed_by="It helps after the embedding.",
        ),
    ),
    tables={"ratios": [{"position": "in heads", "ratio": 0.25}, {"position": "after ffn"}]},
    notes=("mini tasks are not Long Range Arena",),
)


def test_findings_come_back_as_they_were_written(tmp_path):
    path = FOUND.write(tmp_path)
    assert path == tmp_path / "findings" / "placement.json"
    assert read_findings(path) == FOUND


def test_findings_from_before_a_claim_named_its_closed_gate_and_its_unit_are_read():
    values = FOUND.to_dict()
    for row in values["rows"]:
        del row["closed_by"], row["unit"]
    claims = Findings.from_dict(values).claims
    assert [(each.closed_by, each.unit) for each in claims] == [("", ""), ("", "")]


def test_findings_of_another_scale_are_not_written_over(tmp_path):
    check_scale(tmp_path, "placement", "quick")
    path = FOUND.write(tmp_path)
    check_scale(tmp_path, "placement", "mini")
    check_scale(tmp_path, "multiscale", "quick")
    with pytest.raises(ValueError, match=f"`scale` must be 'mini', that of {path}, got 'quick'"):
        check_scale(tmp_path, "placement", "quick")
    check_scale(tmp_path, "placement", "own", ["mini"])


def test_the_text_tells_claim_finding_verdict_and_strength():
    lines = FOUND.text().splitlines()
    assert "claim     It helps after the embedding." in lines
    strength = "n = 30, effect +1.60 points [+0.90, +2.30], p = 0.03, 80 % power from 0.7"
    assert f"verdict   SMALLER THAN CLAIMED   {strength}" in lines
    assert "verdict   INCONCLUSIVE   n = 0" in lines
    assert "  in heads    0.25" in lines
    assert "  after ffn      –" in lines
    assert lines[-1] == "note: mini tasks are not Long Range Arena"


def test_a_page_has_real_minus_signs_and_no_broken_cell():
    harm = JudgedClaim(
        claim="It harms.",
        finding="by |-0.4| points on text-mini",
        verdict=Outcome.SUPPORTED,
        n=6,
        effect=0.7,
        interval=(-0.9, 2.3),
    )
    tables = {"gaps": [{"variant": "a", "gap": -1.5}, {"variant": "b|c"}]}
    found = Findings(name="a", question="b", scale="mini", claims=(harm,), tables=tables)
    row = (
        r"| It harms. | by \|−0.4\| points on text-mini | **supported** | 6 | "
        "+0.70 [−0.90, +2.30] |  | – |"
    )
    assert row in found.markdown().splitlines()
    assert found.tables_markdown().splitlines()[-2:] == ["| a | −1.5 |", r"| b\|c | – |"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("-0.4 [-1, -2]", "−0.4 [−1, −2]"),
        ("10^(-2.91 ± 0.15)", "10^(−2.91 ± 0.15)"),
        (
            "wikitext2-mini, 2020-2021, 1e-07, r-2, --5",
            "wikitext2-mini, 2020-2021, 1e-07, r-2, --5",
        ),
    ],
)
def test_only_the_sign_of_a_number_becomes_a_minus(text, wanted):
    assert typeset(text) == wanted


def test_long_claims_are_wrapped_beside_their_word():
    long = JudgedClaim(claim="word " * 40, finding="x", verdict=Outcome.SUPPORTED, n=1)
    text = Findings(name="a", question="b", scale="mini", claims=(long,)).text(width=60)
    assert max(map(len, text.splitlines())) <= 60


def test_refuses_what_are_no_findings(tmp_path):
    path = tmp_path / "a.json"
    path.write_text("{")
    with pytest.raises(ValueError, match="must be JSON, but"):
        read_findings(path)
    path.write_text("[]")
    with pytest.raises(ValueError, match="must hold an object, got list"):
        read_findings(path)
    path.write_text('{"format": 9}')
    with pytest.raises(ValueError, match=r"must.*format 1 or 2, got 9"):
        read_findings(path)
    output = FOUND.to_dict()
    del output["rows"][0]["n"]
    path.write_text(json.dumps(output))
    with pytest.raises(ValueError, match="must be whole, but"):
        read_findings(path)
    output = FOUND.to_dict()
    output["rows"][0]["verdict"] = "suported"
    path.write_text(json.dumps(output))
    with pytest.raises(ValueError, match="did you mean 'supported'"):
        read_findings(path)


@pytest.mark.parametrize(
    ("word", "interval", "p", "wanted"),
    [
        ("confirmed", (0.5, 1.5), 0.01, Outcome.SUPPORTED),
        ("partly", (0.5, 1.5), 0.01, Outcome.SMALLER),
        ("not confirmed", (-1.5, -0.5), 0.01, Outcome.CONTRADICTED),
        ("not confirmed", (0.5, 1.5), 0.01, Outcome.SMALLER),
        ("not confirmed", (0.5, 1.5), 0.2, Outcome.INCONCLUSIVE),
        ("not confirmed", (-0.5, 1.5), None, Outcome.INCONCLUSIVE),
        ("undecided", None, None, Outcome.INCONCLUSIVE),
    ],
)
def test_the_first_format_is_read_on_the_one_scale(word, interval, p, wanted):
    row = {"claim": "c", "finding": "f", "verdict": word, "n": 13, "interval": interval, "p": p}
    output = {"format": 1, "name": "a", "question": "b", "scale": "mini"}
    (found,) = Findings.from_dict(output | {"rows": [row]}).claims
    assert found.verdict is wanted
    if interval:
        low, high = interval
        assert found.effect == (low + high) / 2
        # Student's interval of 13 numbers: half = t(12) s / √13, so s is known and so is the power.
        spread = (high - low) / 2 / 2.178813 * 13**0.5
        assert found.least == pytest.approx(one_task_effect(13) * spread, rel=1e-5)
    (few,) = Findings.from_dict(output | {"rows": [row | {"n": 5}]}).claims
    assert few.interval is few.least is None
    with pytest.raises(ValueError, match="did you mean 'partly'"):
        Findings.from_dict(output | {"rows": [row | {"verdict": "partl"}]})


def test_numbers_stand_on_the_right_and_words_on_the_left():
    rows = [
        {"variant": "a", "n": 6, "effect": "+1.12 [+0.4, +1.8]", "p": "< 0.001", "state": "done"},
        {"variant": "b", "n": 6, "effect": "−3.48", "p": None, "state": "3 of 6"},
    ]
    assert rows_markdown(rows).splitlines()[1] == "| --- | --: | --: | --: | --- |"


def test_notes_are_a_list_below_the_table():
    notes = replace(FOUND, notes=("small models", "", "one task")).markdown()
    assert notes.endswith("|\n\n- Small models.\n- One task.\n")
    assert "\n\n" not in replace(FOUND, notes=()).markdown()
