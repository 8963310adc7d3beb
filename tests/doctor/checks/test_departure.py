"""Against a reference: code and weights told apart, the place named, the reason found."""

import copy

import pytest
import torch
from torch import nn

from depthpde.doctor.conditions.condition import Condition
from depthpde.doctor.diagnosis import diagnose
from doctor.patients import Case, bert, language, trained

CASE = Case(seed=42, dim=24, blocks=2, length=14, batch=4)


@pytest.fixture(scope="module")
def healthy():
    patient = bert(CASE, initializer_range=0.2)
    return patient.model.eval(), patient.batch


def against(model, healthy):
    found = diagnose(model, healthy[1], reference=healthy[0], baseline=False, checks=False)
    return {each.condition: each for each in found.verdicts if "reference" in each.condition}


def test_a_copy_departs_nowhere(healthy):
    found = against(copy.deepcopy(healthy[0]), healthy)
    assert [each.value for each in found.values()] == [0.0, 0.0]


def test_a_weight_out_of_proportion_is_named_and_the_code_is_not(healthy):
    model = copy.deepcopy(healthy[0])
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(
                1e-4 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(1))
            )
        model.bert.encoder.layer[1].output.LayerNorm.weight.mul_(0.5)
    found = against(model, healthy)
    assert found[Condition.CODE].value == 0.0
    weights = found[Condition.WEIGHTS]
    assert weights.grade.value == "ill"
    assert weights.symptom.where == "bert.encoder.layer.1.output.LayerNorm"
    assert weights.component == "norm"


def test_healthy_updates_are_not_out_of_proportion():
    patient = language(CASE)
    model = copy.deepcopy(patient.model)
    trained(type(patient)(model, patient.batch, patient.labels), CASE, updates=5)
    found = diagnose(model, patient.batch, reference=patient.model, baseline=False, checks=False)
    assert not {Condition.CODE, Condition.WEIGHTS} & set(found.conditions)


def test_a_changed_module_is_named(healthy):
    model = copy.deepcopy(healthy[0])
    model.bert.encoder.layer[0].intermediate.intermediate_act_fn = nn.Tanh()
    found = against(model, healthy)[Condition.CODE]
    assert found.symptom.where.startswith("bert.encoder.layer.0.intermediate")
    assert found.component == "feed-forward"


@pytest.mark.parametrize(
    ("change", "reason", "component"),
    [({"scale": 1.0}, "not divided", "score"), ({"is_causal": True, "attn_mask": None}, "", "")],
)
def test_a_changed_attention_is_explained(healthy, monkeypatch, change, reason, component):
    model = copy.deepcopy(healthy[0])
    module = model.bert.encoder.layer[1].attention.self
    inner, real = module.forward, nn.functional.scaled_dot_product_attention

    def forward(*args, **kwargs):
        monkeypatch.setattr(
            nn.functional,
            "scaled_dot_product_attention",
            lambda *a, **k: real(*a, **{**k, **change}),
        )
        try:
            return inner(*args, **kwargs)
        finally:
            monkeypatch.setattr(nn.functional, "scaled_dot_product_attention", real)

    module.forward = forward
    found = against(model, healthy)[Condition.CODE]
    assert found.grade.value == "ill"
    assert found.symptom.where.startswith("bert.encoder.layer.1.attention")
    assert reason in found.evidence
    assert component in found.component


def test_another_dropout_shows_in_train_mode_alone(healthy):
    model = copy.deepcopy(healthy[0])
    model.bert.encoder.layer[0].output.dropout.p = 0.6
    found = against(model, healthy)[Condition.CODE]
    assert found.grade.value == "ill"
    assert "train mode" in found.evidence
    assert found.symptom.where == "bert.encoder.layer.0.output.dropout"
    assert not model.training


@pytest.mark.parametrize("how", ["shape", "missing", "frozen"])
def test_other_parts_are_named_before_anything_runs(healthy, how):
    model = copy.deepcopy(healthy[0])
    if how == "shape":
        model.classifier = nn.Linear(24, 9)
    elif how == "missing":
        del model.classifier._parameters["bias"]
        model.classifier.bias = torch.zeros(5)
    else:
        model.classifier.weight.requires_grad_(False)
    found = against(model, healthy)[Condition.CODE]
    assert found.grade.value == "ill"
    assert found.symptom.where == "classifier"
    assert found.component == "output"
