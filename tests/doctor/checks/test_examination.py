"""Every check on a small model, healthy and with the fault it is for; nothing is left changed."""

import copy
from dataclasses import replace

import pytest
import torch

from depthpde.doctor.checks.components import component_of, component_of_weight
from depthpde.doctor.checks.inspection import inspect_weights
from depthpde.doctor.checks.motion import Motion
from depthpde.doctor.checks.order import order_facts
from depthpde.doctor.conditions.condition import Condition
from depthpde.doctor.diagnosis import diagnose
from depthpde.doctor.model_map import model_map
from doctor.exam_models import FAMILIES
from doctor.patients import Case, bert, classifier, gpt2, torch_encoder

CASE = Case(seed=41, dim=24, blocks=2, length=14, batch=4)


@pytest.fixture(scope="module")
def patient():
    return classifier(CASE)


def conditions(model, batch):
    return diagnose(model, batch, baseline=False).conditions


def test_a_healthy_model_passes_all_checks_and_keeps_its_weights(patient):
    before = copy.deepcopy(patient.model.state_dict())
    output = diagnose(patient.model, patient.batch, baseline=False)
    assert output.conditions == ()
    facts = output.trajectory.facts
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


def epsilon_above_usual(model):
    model.encoder.blocks[0].attention_norm.eps = 0.05


def scaled_residual(model):
    block = model.encoder.blocks[1]
    block.register_forward_hook(lambda m, args, out: out + args[0])


def clipped(model):
    model.encoder.blocks[0].register_forward_hook(lambda m, args, out: out.clamp(-1, 1))


def dropped_stream(model):
    model.encoder.blocks[1].register_forward_hook(
        lambda m, args, out: torch.nn.functional.dropout(out, 0.3, m.training)
    )


def half_inside(model):
    model.encoder.blocks[0].attention.register_forward_hook(lambda m, args, out: out.half().float())


def bounded(model):
    model.encoder.blocks[1].reaction.activation = torch.tanh


def moved_gains(model):
    norm = model.encoder.blocks[1].reaction_norm
    norm.weight.add_(0.01 * torch.randn(norm.weight.shape)).mul_(0.5)


def moved_shifts(model):
    norm = model.encoder.blocks[0].reaction_norm
    norm.bias.add_(0.01 * torch.randn(norm.bias.shape) + 0.7)


def scaled_reaction(model):
    for block in model.encoder.blocks:
        block.reaction.enter.weight.mul_(5)
        block.reaction.out.weight.mul_(5)


def repeated(model):
    table = next(each for name, each in model.named_parameters() if name.endswith("sites"))
    table[7:] = table[6]


def wider(model):
    head = torch.nn.Linear(model.head.in_features, model.head.out_features + 2)
    model.head = head


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
    (epsilon_above_usual, Condition.LARGE_EPSILON),
    (scaled_residual, Condition.BLOCK_SUM),
    (clipped, Condition.BLOCK_SUM),
    (dropped_stream, Condition.DROPOUT),
    (half_inside, Condition.PRECISION),
    (bounded, Condition.ACTIVATION),
    (moved_gains, Condition.NORM_SHIFT),
    (moved_shifts, Condition.NORM_SHIFT),
    (scaled_reaction, Condition.SIZES),
    (repeated, Condition.REPEATED),
    (wider, Condition.WIDTH),
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


@pytest.mark.parametrize("by", [0.5, 2.0, 5.0])
def test_a_gain_that_is_added_to_one_was_moved_where_it_is_not_zero(by):
    from transformers import GemmaConfig, GemmaForCausalLM

    torch.manual_seed(0)
    settings = {"vocab_size": 29, "hidden_size": 16, "intermediate_size": 32, "head_dim": 8,
                "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1,
                "bos_token_id": 1, "eos_token_id": None, "pad_token_id": 0}  # fmt: skip
    model = GemmaForCausalLM(GemmaConfig(**settings)).eval()
    ids = torch.randint(1, 29, (4, 9), generator=torch.Generator().manual_seed(0))
    gains = [layer.post_attention_layernorm.weight for layer in model.model.layers]
    with torch.no_grad():
        for gain in gains:  # as learning leaves it
            gain.add_(0.02 * torch.randn(gain.shape))
    assert Condition.NORM_SHIFT not in conditions(model, {"input_ids": ids})
    with torch.no_grad():
        for gain in gains:
            gain.mul_(by).add_(by - 1)  # 1 + w times `by`
    assert Condition.NORM_SHIFT in conditions(model, {"input_ids": ids})


def test_patches_without_positions_are_a_blind_model():
    model = FAMILIES["ViT"](CASE).model.eval()
    images = torch.randn(4, 3, 24, 24, generator=torch.Generator().manual_seed(0))
    seeing = diagnose(model, {"pixel_values": images}, baseline=False)
    assert seeing.trajectory.facts["positions"] > 1e-6
    with torch.no_grad():
        model.vit.embeddings.position_embeddings.zero_()
    assert Condition.POSITIONS in conditions(model, {"pixel_values": images})


@pytest.mark.parametrize(
    ("input_", "reason"),
    [
        (torch.randn(2, 3, 24, 6), "too few patches"),
        (torch.randn(2, 9, 16), "neither a sequence of tokens nor an image in patches"),
    ],
)
def test_why_positions_are_not_measured(input_, reason):
    body = model_map(FAMILIES["ViT"](CASE).model.eval())
    assert reason in order_facts(body, (input_,), {})["positions"].reason


def test_a_mask_that_does_not_hold_lets_padding_through():
    patient = bert(CASE)
    ids, mask = patient.batch["input_ids"], patient.batch["attention_mask"]

    def forget(module, args, kwargs):
        return (args[0], None, *args[2:]), kwargs

    for block in patient.model.bert.encoder.layer:
        block.register_forward_pre_hook(forget, with_kwargs=True)
    output = diagnose(patient.model, {"input_ids": ids, "attention_mask": mask}, baseline=False)
    verdict = next(each for each in output.verdicts if each.condition == Condition.PADDING)
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
    output = diagnose(patient.model, patient.batch, baseline=False)
    assert output.trajectory["units.dead"]["block 2"] == pytest.approx(50 / 96, abs=0.05)


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


def in_the_kernel(change):
    """Let attention of a BERT call `change(kernel, …)` in the place of torch's kernel."""
    patient = bert(CASE, attention_probs_dropout_prob=0.1)
    for block in patient.model.bert.encoder.layer:
        inner = block.attention.self.forward

        def forward(*args, inner=inner, module=block.attention.self, **named):
            real = torch.nn.functional.scaled_dot_product_attention
            torch.nn.functional.scaled_dot_product_attention = change(real, module)
            try:
                return inner(*args, **named)
            finally:
                torch.nn.functional.scaled_dot_product_attention = real

        block.attention.self.forward = forward
    return patient


def verdict_of(patient, condition):
    output = diagnose(patient.model, patient.batch, baseline=False)
    return next(each for each in output.verdicts if each.condition == condition)


def test_dropout_that_the_module_does_not_declare_and_on_scores_are_told_apart():
    def another_rate(real, module):
        return lambda q, k, v, **rest: real(
            q, k, v, **rest | {"dropout_p": 0.4 if module.training else 0.0}
        )

    def on_scores(real, module):
        def kernel(q, k, v, attn_mask=None, **rest):
            scores = torch.nn.functional.dropout(q @ k.mT, 0.1, module.training)
            return torch.softmax(scores / q.shape[-1] ** 0.5 + (attn_mask or 0), dim=-1) @ v

        return kernel

    found = verdict_of(in_the_kernel(another_rate), Condition.DROPOUT)
    assert (found.grade.value, found.component) == ("ill", "kernel")
    assert found.value == pytest.approx(0.4)
    patient = in_the_kernel(on_scores)
    ids = patient.batch["input_ids"].clamp_min(1)
    found = verdict_of(replace(patient, batch={"input_ids": ids}), Condition.DROPOUT)
    assert (found.grade.value, found.component) == ("ill", "score")
    assert verdict_of(bert(CASE), Condition.DROPOUT).grade.value == "healthy"


def test_a_new_head_on_blocks_that_learned_is_watched_and_ill_at_chance():
    patient = classifier(CASE)
    with torch.no_grad():
        for name, weight in patient.model.named_parameters():
            if name.endswith("bias"):
                weight.fill_(0.0 if name.startswith("head") else 0.01)
        patient.model.head.weight.mul_(1e-3)
    assert verdict_of(patient, Condition.UNTRAINED).grade.value == "watch"
    output = diagnose(patient.model, patient.batch, labels=patient.labels, baseline=False)
    assert Condition.UNTRAINED in output.conditions


def test_what_attention_holds_itself_is_q_k_v_and_a_table_of_sites_positions():
    body = model_map(torch_encoder(CASE, norm_first=True).model)
    found = {component_of_weight(body, name) for name, _ in body.model.named_parameters()
             if "in_proj" in name}  # fmt: skip
    assert found == {"q, k, v"}
    assert component_of_weight(body, "sites") == "positions"


def test_a_term_that_adds_nothing_is_no_fault_of_the_sum(patient):
    model = copy.deepcopy(patient.model)
    value = model.get_parameter("encoder.blocks.0.attention.value.weight")
    value.data.zero_()
    assert Condition.BLOCK_SUM not in conditions(model, patient.batch)
