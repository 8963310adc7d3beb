"""A model against a new one of its class: what was changed after it was made is found alone."""

import copy

import pytest
import torch
from torch import nn

import depthpde as dp
from depthpde.doctor.checks.own_class import class_departure, made_anew
from depthpde.doctor.conditions.condition import Condition
from depthpde.doctor.diagnosis import diagnose
from depthpde.doctor.model_map import model_map
from depthpde.doctor.not_measured import NotMeasured
from doctor.patients import Case, bert, classifier, gpt2, torch_encoder, trained

CASE = Case(seed=42, dim=24, blocks=2, length=14, batch=4)


def found(patient):
    result = diagnose(patient.model, patient.batch, baseline=False)
    return next((each for each in result.verdicts if each.condition == Condition.OWN_CLASS), None)


@pytest.mark.parametrize("make", [bert, gpt2, classifier])
def test_a_model_as_its_class_makes_it_departs_nowhere(make):
    assert found(make(CASE)).value == 0.0


def test_one_that_learned_departs_nowhere_either():
    assert found(trained(classifier(CASE), CASE, updates=5)).value == 0.0


def test_a_forward_that_was_replaced_is_named_with_its_part():
    patient = bert(CASE)
    module = patient.model.bert.encoder.layer[1].intermediate
    inner = module.forward
    module.forward = lambda u: 1.5 * inner(u)
    result = found(patient)
    assert result.grade.value == "ill"
    assert result.component == "feed-forward"
    assert result.symptom.where == "bert.encoder.layer.1.intermediate"


def test_a_setting_of_one_module_that_the_config_does_not_have_is_named():
    patient = bert(CASE)
    patient.model.bert.encoder.layer[0].output.LayerNorm.eps = 0.3
    result = found(patient)
    assert (result.grade.value, result.component) == ("ill", "norm")
    assert "eps = 0.3" in result.evidence


def test_another_rate_of_dropout_shows_in_train_mode_alone():
    patient = bert(CASE)
    patient.model.bert.encoder.layer[0].output.dropout.p = 0.6
    assert "dropout" in found(patient).evidence


def test_a_weight_of_another_shape_and_one_that_is_no_parameter_are_named():
    patient = bert(CASE)
    patient.model.classifier = nn.Linear(CASE.dim, 9)
    assert "classifier.weight has the shape [9, 24]" in found(patient).evidence
    patient = bert(CASE)
    query = patient.model.bert.encoder.layer[0].attention.self.query
    weight = query.weight.detach().clone()
    del query._parameters["weight"]
    query.weight = weight
    assert "not of this model" in found(patient).evidence


def test_a_model_that_was_extended_or_frozen_is_left_alone():
    patient = bert(CASE)
    patient.model.requires_grad_(False)
    assert found(patient).value == 0.0
    dp.insert(patient.model, "after_embedding")
    assert found(patient) is None
    patient = bert(CASE)
    fresh = made_anew(patient.model)
    patient.model.more = nn.Linear(2, 2)
    args = (), dict(patient.batch)
    result = class_departure(model_map(patient.model), fresh, *args)
    assert isinstance(result, NotMeasured)
    assert "its class does not have" in result.reason


def test_a_class_that_cannot_be_made_from_settings_is_not_compared():
    assert made_anew(torch_encoder(CASE, norm_first=True).model) is None
    mixed = bert(CASE).model
    mixed.classifier.half()
    assert made_anew(mixed) is None
    assert found(torch_encoder(CASE, norm_first=True)) is None


def test_making_it_anew_draws_other_weights_and_leaves_random_numbers_alone():
    model = bert(CASE).model
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    fresh = made_anew(model)
    assert torch.equal(torch.rand(1), expected)
    pairs = zip(fresh.parameters(), copy.deepcopy(model).parameters(), strict=True)
    assert any(not torch.equal(a, b) for a, b in pairs)
