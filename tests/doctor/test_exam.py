"""A slice of the exam: faults are found and named, healthy models are left alone."""

import copy

import pytest
import torch

from doctor.exam import (
    SETTINGS,
    SLICE_FAMILIES,
    cache_change,
    change,
    changes_function,
    healthy_of,
    jobs,
    sit,
)
from doctor.exam_models import FAMILIES, SEEN, SIZES, UNSEEN, case_of, learn
from doctor.exam_patient import DoesNotApply, patient
from doctor.exam_scores import auroc, macro_f1
from doctor.fault_weights import norms
from doctor.faults import FAULTS
from doctor.zoo import CALIBRATION

SLICE = {
    "mask inverted": "masking", "heads split wrongly": "q, k, v", "1/√d dropped": "score",
    "other activation": "feed-forward", "gain scaled": "norm", "bypassed": "residual",
}  # fmt: skip


def test_there_are_52_faults_of_twelve_components():
    assert len(FAULTS) == 52
    assert len({each.component for each in FAULTS}) == 12


def test_the_exam_shares_no_seed_no_size_and_half_of_the_families_with_nobody():
    seeds, sizes = {c.seed for c in CALIBRATION}, {(c.dim, c.blocks, c.length) for c in CALIBRATION}
    cases = [case_of(name, k) for name in FAMILIES for k in (0, *range(100, 114))]
    assert not seeds & {each.seed for each in cases}
    assert not sizes & set(SIZES)
    assert len(UNSEEN) == len(SEEN) == 6


@pytest.fixture(scope="module")
def subject():
    case = case_of("BERT", 0)
    return learn(FAMILIES["BERT"](case), 10, seed=case.seed)


CHOSEN = [each for each in FAULTS if SLICE.get(each.name) == each.component]


@pytest.mark.parametrize("fault", CHOSEN, ids=lambda fault: fault.name)
def test_a_fault_is_found_against_its_reference_and_named(subject, fault):
    model = copy.deepcopy(subject.model)
    with torch.no_grad():
        fault.apply(patient(model, 3, 20), fault.strengths[-1])
    inputs, _ = subject.batch(torch.Generator().manual_seed(4))
    assert changes_function(change(subject.model, model, inputs))
    output = sit(subject, model, 4, train=False, reference=subject.model)["against a reference"]
    ill = [each for each in output if each["grade"] == "ill"]
    assert ill[0]["component"] == fault.component


def test_a_fault_that_a_family_cannot_have_says_so(subject):
    fault = next(each for each in FAULTS if each.name == "share of future keys open")
    with pytest.raises(DoesNotApply, match="no causal mask"):
        fault.apply(patient(subject.model, 0, 20), 0.1)


def test_a_slice_has_one_family_of_the_calibration_and_one_that_it_never_saw():
    assert [name in SEEN for name in SLICE_FAMILIES] == [False, True]
    names = [name for name, _ in jobs(None, whole=False)]
    assert names == [f"{kind} {each}" for each in SLICE_FAMILIES for kind in ("faults", "healthy")]
    assert set(names) < {name for name, _ in jobs(None)}


def decoder(family):
    case = case_of(family, 3)
    subject = FAMILIES[family](case)
    subject.model.eval()
    return case, subject, subject.batch(torch.Generator().manual_seed(1))[0]


@pytest.mark.parametrize("family", ["GPT-2", "x-transformers", "depthpde language model"])
@pytest.mark.parametrize(
    "fault", [each for each in FAULTS if each.component == "KV cache"], ids=lambda each: each.name
)
def test_a_fault_of_the_cache_moves_what_is_decoded_and_nothing_else(family, fault):
    case, subject, inputs = decoder(family)
    model = copy.deepcopy(subject.model)
    assert cache_change(subject.model, model, inputs) == 0.0
    fault.apply(patient(model, 1, case.length), fault.strengths[0])
    assert change(subject.model, model, inputs)["eval"] == 0.0
    assert cache_change(subject.model, model, inputs) > 1e-5


def test_a_cache_fault_of_x_transformers_is_found_by_one_batch():
    case, subject, _ = decoder("x-transformers")
    fault = next(each for each in FAULTS if each.name == "leaks across requests")
    fault.apply(patient(subject.model, 1, case.length), fault.strengths[0])
    output = sit(subject, subject.model, 2, train=False)["one batch"]
    assert [each["component"] for each in output if each["grade"] == "ill"] == ["KV cache"]


@pytest.mark.parametrize("family", ["Gemma-3", "x-transformers", "Llama"])
def test_a_gain_of_zero_is_zero_whatever_a_norm_adds_to_its_weight(family):
    case, subject, _ = decoder(family)
    fault = next(each for each in FAULTS if each.name == "gain zero")
    with torch.no_grad():
        fault.apply(patient(subject.model, 1, case.length), "")
        for norm in norms(patient(subject.model, 1, case.length)):
            assert not norm(torch.randn(2, case.dim)).any()


def test_a_healthy_model_is_left_alone_in_every_setting():
    record = healthy_of("GPT-2", 1, train=True)
    for setting in SETTINGS:
        assert [each for each in record[setting] if each["grade"] == "ill"] == [], setting


def test_scores_are_what_they_say():
    assert auroc([2.0, 3.0], [0.0, 2.0]) == pytest.approx(0.875)
    assert macro_f1([("a", "a"), ("a", ""), ("b", "b")]) == pytest.approx((2 / 3 + 1) / 2)
    assert macro_f1([("a", "a"), ("", "a")]) == pytest.approx(2 / 3)
