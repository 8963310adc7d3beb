"""What a library's class is made like is watched; what happened to one model stays ill."""

import json

import torch
from transformers import GraniteConfig, GraniteForCausalLM

from depthpde.doctor.conditions.condition import Condition
from depthpde.doctor.diagnosis import Diagnosis, diagnose
from depthpde.doctor.thresholds import Grade
from doctor.patients import Case, bert

CASE = Case(seed=42, dim=24, blocks=2, length=14, batch=4)


def granite():
    """A decoder whose scores are not divided by √d, as its settings declare."""
    torch.manual_seed(1)
    shape = GraniteConfig(
        vocab_size=31, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, intermediate_size=48, max_position_embeddings=32,
        bos_token_id=1, eos_token_id=None, pad_token_id=0, attention_multiplier=1.0,
    )  # fmt: skip
    ids = torch.randint(1, 31, (4, 12), generator=torch.Generator().manual_seed(2))
    return GraniteForCausalLM(shape).eval(), {"input_ids": ids}


def verdict(output, condition):
    return next(each for each in output.verdicts if each.condition == condition)


def test_a_scale_that_the_class_declares_is_watched_and_one_that_was_put_in_is_ill():
    output = diagnose(*granite(), baseline=False)
    found = verdict(output, Condition.SCALE)
    assert (found.grade, found.by_design) == (Grade.WATCH, True)
    assert found.severity == 1.0
    assert "its design" in str(output)
    patient = bert(CASE)
    for layer in patient.model.bert.encoder.layer:
        layer.attention.self.scaling = 1.0
    output = diagnose(patient.model, patient.batch, baseline=False)
    assert verdict(output, Condition.SCALE).grade is Grade.ILL


def test_an_empty_matrix_is_excused_only_if_a_new_model_has_the_same_one_empty():
    model, batch = granite()
    with torch.no_grad():
        model.model.layers[1].self_attn.v_proj.weight.zero_()
    output = diagnose(model, batch, baseline=False)
    assert verdict(output, Condition.EMPTY_WEIGHTS).grade is Grade.ILL
    assert verdict(output, Condition.SCALE).grade is Grade.WATCH


def test_the_excuse_survives_json(tmp_path):
    output = diagnose(*granite(), baseline=False)
    path = tmp_path / "said.json"
    path.write_text(json.dumps(output.to_dict()))
    again, found = (verdict(each, Condition.SCALE) for each in (Diagnosis.read(path), output))
    assert (again.grade, again.by_design, again.evidence) == (Grade.WATCH, True, found.evidence)


def test_a_class_of_the_callers_own_is_not_excused():
    class Mine(GraniteForCausalLM):
        """A class of this file."""

    model, batch = granite()
    mine = Mine(model.config).eval()
    output = diagnose(mine, batch, baseline=False)
    assert verdict(output, Condition.SCALE).grade is Grade.ILL
