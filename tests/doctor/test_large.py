"""A large model is diagnosed on fewer rows and sites: the same verdicts, and it says so."""

import pytest
import torch

from depthpde.doctor import large
from depthpde.doctor.diagnosis import diagnose
from doctor.patients import Case, gpt2

CASE = Case(seed=3, dim=24, blocks=2, length=20, words=31, batch=12)


@pytest.fixture
def treated_as_large(monkeypatch):
    """Let every model count as large, and as few tokens as two rows have be looked at."""
    monkeypatch.setattr(large, "MANY", 0)
    monkeypatch.setattr(large, "FEW_TOKENS", 2 * CASE.length)
    monkeypatch.setattr("depthpde.doctor.activations.FEW_TOKENS", 2 * CASE.length)


def verdicts(diagnosis):
    return {each.condition: each.grade for each in diagnosis.verdicts}


def examined(**options):
    patient = gpt2(CASE)
    return diagnose(patient.model, patient.batch, baseline=False, **options)


def labels():
    return gpt2(CASE).batch["input_ids"]


def test_a_model_of_a_hundred_million_parameters_is_large_and_one_of_ten_is_not():
    assert large.is_large(torch.nn.Linear(10_000, 10_000, device="meta"))
    assert not large.is_large(torch.nn.Linear(1_000, 10_000, device="meta"))


def test_a_large_model_has_the_verdicts_of_a_small_one(treated_as_large, monkeypatch):
    few = examined(labels=labels())
    monkeypatch.undo()
    whole = examined(labels=labels())
    assert verdicts(few) == verdicts(whole)
    for name in ("drift.cosine", "rank.residual", "energy.size", "units.dead"):
        assert few.trajectory[name] == whole.trajectory[name], "of the whole batch"


def test_a_large_model_says_what_was_measured_on_a_few_rows(treated_as_large):
    text = str(examined(labels=labels()))
    assert "gradients were measured on 2 of 12 sequences" in text
    assert "attention was measured on 2 of 12 sequences" in text
    assert "not measured: gradients of weights" in text


def test_gradients_of_a_few_rows_are_those_of_the_same_batch_cut(treated_as_large, monkeypatch):
    few = examined(labels=labels()).trajectory["gradient.stream"]
    monkeypatch.undo()
    patient = gpt2(CASE)
    cut = {name: each[:2] for name, each in patient.batch.items()}
    alone = diagnose(patient.model, cut, labels=labels()[:2], baseline=False)
    assert few.values == pytest.approx(alone.trajectory["gradient.stream"].values, rel=1e-5)


def test_a_loss_that_holds_its_answers_takes_all_rows(treated_as_large):
    wanted = labels()

    def loss(output):
        assert output.logits.shape[0] == len(wanted)
        return torch.nn.functional.cross_entropy(output.logits.flatten(0, 1), wanted.flatten())

    assert "gradients were" not in str(examined(loss=loss))


def test_the_fullest_rows_are_chosen(treated_as_large):
    mask = torch.tensor([[True, False], [True, True], [False, False], [True, True]])
    rows = large.gradient_rows(torch.nn.Linear(2, 2), 4, 20, mask)
    assert rows.tolist() == [1, 3]
    take = large.of_rows(rows, 4)
    assert take(torch.arange(4)).tolist() == [1, 3]
    assert take(torch.arange(3)).tolist() == [0, 1, 2]
    assert take("sdpa") == "sdpa"


def test_tokens_are_cut_to_a_few_sites_and_fields_are_not():
    assert large.shorter(torch.zeros(2, 99, dtype=torch.long)).shape == (2, large.SITES)
    assert large.shorter(torch.zeros(2, 99)).shape == (2, 99)
