"""Two diagnoses side by side: what got worse, from models or from files, as words and as a page."""

import copy
import json

import pytest
import torch

import depthpde as dp
from depthpde.doctor.comparison import compare_diagnoses
from depthpde.doctor.conditions.condition import Condition
from depthpde.doctor.diagnosis import Diagnosis, diagnose
from doctor.patients import Case, classifier


@pytest.fixture(scope="module")
def pair():
    patient = classifier(Case(seed=43, dim=16, blocks=2, length=12, batch=4))
    broken = copy.deepcopy(patient.model)
    with torch.no_grad():
        broken.encoder.blocks[1].attention.value.weight.zero_()
        broken.encoder.blocks[1].attention.value.bias.zero_()
    return tuple(diagnose(each, patient.batch, baseline=False) for each in (patient.model, broken))


def test_what_got_worse_is_named_and_the_way_back_is_better(pair):
    healthy, broken = pair
    compared = compare_diagnoses(healthy, broken)
    assert Condition.EMPTY_WEIGHTS in compared.worse
    assert compared.rows[0].change == "worse"
    assert "worse" in str(compared)
    back = compare_diagnoses(broken, healthy)
    assert back.worse == ()
    assert {"better", "same"} <= {each.change for each in back.rows}
    assert compare_diagnoses(healthy, healthy).rows[0].change == "same"


def test_a_diagnosis_is_read_back_whole(pair, tmp_path):
    for each in pair:
        path = tmp_path / "one.json"
        path.write_text(json.dumps(each.to_dict()), encoding="utf-8")
        read = Diagnosis.read(path)
        assert read.to_dict() == each.to_dict()
        assert (read.grade, read.conditions, str(read)) == (each.grade, each.conditions, str(each))
        assert compare_diagnoses(each, read).worse == ()


def test_the_page_shows_both_and_needs_no_network(pair, tmp_path):
    compared = compare_diagnoses(*pair, names=("reference", "mine"))
    page = compared.save(tmp_path / "deep" / "page.html").read_text(encoding="utf-8")
    assert "reference: healthy" in page
    assert "mine: ill" in page
    assert "What changed" in page
    assert page.count("<svg") > 6
    assert "://" not in page.replace("http://www.w3.org", "")
    assert "No grade changed" in (
        compare_diagnoses(pair[0], pair[0]).save(tmp_path / "same.html").read_text(encoding="utf-8")
    )


def test_what_one_of_the_two_did_not_measure_is_said(pair):
    healthy, broken = pair
    fewer = Diagnosis(healthy.trajectory, healthy.verdicts[:1], {})
    found = {each.condition: each for each in compare_diagnoses(fewer, broken).rows}
    assert found[Condition.EMPTY_WEIGHTS].change == "new"
    assert "not measured" in str(found[Condition.EMPTY_WEIGHTS])
    gone = {each.condition: each for each in compare_diagnoses(broken, fewer).rows}
    assert gone[Condition.EMPTY_WEIGHTS].change == "gone"
    assert json.dumps(compare_diagnoses(broken, fewer).to_dict())


def test_refuses_what_is_no_diagnosis(pair, tmp_path):
    with pytest.raises(TypeError, match=r"`after` must be a Diagnosis, got dict.*read"):
        dp.compare_diagnoses(pair[0], {})
    path = tmp_path / "other.json"
    path.write_text("{}", encoding="utf-8")
    with pytest.raises(ValueError, match=r"doctor --json.*verdicts.*again"):
        Diagnosis.read(path)
