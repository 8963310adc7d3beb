"""Every check on a small model, healthy and with the fault it is for; nothing is left changed."""

import copy

import pytest
import torch

from depthpde.doctor.checks.components import component_of
from depthpde.doctor.checks.inspection import inspect_weights
from depthpde.doctor.checks.motion import Motion
from depthpde.doctor.conditions.condition import Condition
from depthpde.doctor.diagnosis import diagnose
from depthpde.doctor.model_map import model_map
from doctor.patients import Case, bert, classifier, gpt2, torch_encoder

CASE = Case(seed=41, dim=24, blocks=2, length=14, batch=4)


@pytest.fixture(scope="module")
def patient():
    return classifier(CASE)


def conditions(model, batch):
    return diagnose(model, batch, baseline=False).conditions


def test_a_healthy_model_passes_all_checks_and_keeps_its_weights(patient):
    before = copy.deepcopy(patient.model.state_dict())
    said = diagnose(patient.model, patient.batch, baseline=False)
    assert said.conditions == ()
    facts = said.trajectory.facts
    assert facts["weights"] == []
    assert facts["positions"] > 1e-3
    assert facts["one_sided"] is False
    assert facts["padding"]["size"] == 0.0
    assert facts["isolation"]["memory"]["verdict"] == "isolated"
    assert all(torch.equal(before[name], each) for name, each in patient.model.state_dict().items())


def attention(model):
    return model.encoder.blocks[0].attention


def zero_rows(model):
    model.encoder.embedding.weight[3:9] = 0


def blind(model):
    attention(model).query.weight.zero_()
    attention(model).query.bias.zero_()


def tied(model):
    for part in (attention(model).query, attention(model).key):
        part.weight[6:12] = part.weight[:6]
        part.bias[6:12] = part.bias[:6]


def freeze(model):
    attention(model).query.weight.requires_grad_(False)


def loosen(model):
    weight = attention(model).query.weight
    del attention(model).query._parameters["weight"]
    attention(model).query.weight = weight.detach().clone()


def big_epsilon(model):
    model.encoder.blocks[1].attention_norm.eps = 10.0


def noisy(model):
    model.encoder.blocks[0].register_forward_hook(lambda m, a, out: out + torch.randn_like(out))


FAULTS = [
    (zero_rows, Condition.EMPTY_WEIGHTS),
    (blind, Condition.BLIND_HEADS),
    (tied, Condition.TIED_HEADS),
    (freeze, Condition.FROZEN),
    (loosen, Condition.FROZEN),
    (big_epsilon, Condition.NORM_EPSILON),
    (noisy, Condition.UNREPEATABLE),
]


@pytest.mark.parametrize(("fault", "condition"), FAULTS, ids=[f.__name__ for f, _ in FAULTS])
def test_a_fault_is_found(patient, fault, condition):
    model = copy.deepcopy(patient.model)
    with torch.no_grad():
        fault(model)
    assert condition in conditions(model, patient.batch)


def test_tokens_without_positions_are_a_blind_model():
    patient = torch_encoder(CASE, norm_first=True)
    with torch.no_grad():
        patient.model.sites.zero_()
    assert Condition.POSITIONS in conditions(patient.model, patient.batch)


def test_a_mask_that_does_not_hold_lets_padding_through():
    patient = bert(CASE)
    ids, mask = patient.batch["input_ids"], patient.batch["attention_mask"]

    def forget(module, args, kwargs):
        return (args[0], None, *args[2:]), kwargs

    for block in patient.model.bert.encoder.layer:
        block.register_forward_pre_hook(forget, with_kwargs=True)
    said = diagnose(patient.model, {"input_ids": ids, "attention_mask": mask}, baseline=False)
    verdict = next(each for each in said.verdicts if each.condition == Condition.PADDING)
    assert verdict.grade.value == "ill"
    assert verdict.symptom.where == "block 1"


def test_the_parts_of_a_model_are_named():
    body = model_map(gpt2(CASE).model)
    named = {
        "transformer.wte": "embedding",
        "transformer.wpe": "positions",
        "transformer.h.0": "residual",
        "transformer.h.1.ln_1": "norm",
        "transformer.h.1.attn": "score",
        "lm_head": "output",
        "transformer.h.1.attn.c_attn": "q, k, v",
        "transformer.h.0.mlp.c_fc": "feed-forward",
    }
    assert {path: component_of(body, path) for path in named} == named


def test_motion_names_what_no_update_moves(patient):
    model = copy.deepcopy(patient.model)
    body = model_map(model)
    motion = Motion(body)
    still = "encoder.blocks.1.reaction.enter.weight"
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name != still:
                weight.add_(0.01 * weight.norm() / weight.numel() ** 0.5 + 1e-9)
    facts, series = motion.look(2)
    assert facts["unmoved"]["names"] == [still]
    assert facts["unmoved"]["component"] == "feed-forward"
    assert series["updates.ratio"]["block 1"] == pytest.approx(0.01 / 2, rel=0.05)
    facts, series = motion.look(3)
    assert max(series["updates.ratio"].values) == 0.0


def test_dead_units_are_counted():
    patient = bert(CASE, hidden_act="relu")
    with torch.no_grad():
        patient.model.bert.encoder.layer[1].intermediate.dense.bias[:50] = -1e3
    said = diagnose(patient.model, patient.batch, baseline=False)
    assert said.trajectory["units.dead"]["block 2"] == pytest.approx(50 / 96, abs=0.05)


def test_the_row_of_padding_of_a_tied_head_is_not_empty(patient):
    model = gpt2(CASE).model
    model.transformer.wte.padding_idx = 0
    with torch.no_grad():
        model.transformer.wte.weight[0] = 0
    assert inspect_weights(model_map(model)) == []
    with torch.no_grad():
        model.transformer.wte.weight[1] = 0
    names = [each["name"] for each in inspect_weights(model_map(model))]
    assert names == ["transformer.wte.weight", "lm_head.weight"]
