"""Families that a run finds: a slice of benchmarks/reach.py, and what each kind of block shows."""

import pytest
import torch
from torch import nn

import depthpde as dp
from depthpde.insertion.families.recognition import find_stacks, recognise
from depthpde.insertion.families.traced import trace
from depthpde.insertion.hooks.hook_points import available
from insertion.nano import GPT

BASE = {"vocab_size": 40, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 32, "max_position_embeddings": 64}  # fmt: skip
GEMMA = BASE | {"num_key_value_heads": 2, "head_dim": 4, "pad_token_id": 0}
IMAGE = {"image_size": 16, "patch_size": 4, "num_labels": 3}
SEQ2SEQ = {"vocab_size": 40, "d_model": 16, "encoder_layers": 2, "decoder_layers": 2,
           "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 32,
           "decoder_ffn_dim": 32, "max_position_embeddings": 64}  # fmt: skip
TYPES = {
    "GPTNeoXForCausalLM": BASE,
    "PhiForCausalLM": BASE,
    "FalconForCausalLM": BASE,
    "Olmo2ForCausalLM": BASE | {"num_key_value_heads": 2, "pad_token_id": 0},
    "Glm4ForCausalLM": GEMMA,
    "BloomForCausalLM": {"vocab_size": 40, "hidden_size": 16, "n_layer": 2, "n_head": 4},
    "MptForCausalLM": {"vocab_size": 40, "d_model": 16, "n_layers": 2, "n_heads": 4},
    "ModernBertForMaskedLM": BASE | {"pad_token_id": 0},
    "DebertaV2ForMaskedLM": BASE,
    "AlbertForMaskedLM": BASE | {"embedding_size": 8},
    "T5ForConditionalGeneration": {
        "vocab_size": 40, "d_model": 16, "d_kv": 4, "d_ff": 32, "num_layers": 2, "num_heads": 4,
    },
    "BartForConditionalGeneration": SEQ2SEQ,
    "Dinov2ForImageClassification": BASE | IMAGE,
    "BeitForImageClassification": BASE | IMAGE,
    "SwinForImageClassification": IMAGE | {
        "embed_dim": 8, "depths": [2, 2], "num_heads": [2, 2], "window_size": 2,
    },
}  # fmt: skip
POSITIONS = {
    "GPTNeoXForCausalLM": 6, "PhiForCausalLM": 7, "FalconForCausalLM": 6, "Olmo2ForCausalLM": 6,
    "Glm4ForCausalLM": 7, "BloomForCausalLM": 6, "MptForCausalLM": 6, "ModernBertForMaskedLM": 5,
    "DebertaV2ForMaskedLM": 7, "AlbertForMaskedLM": 7, "T5ForConditionalGeneration": 7,
    "BartForConditionalGeneration": 7, "Dinov2ForImageClassification": 7,
    "BeitForImageClassification": 7, "SwinForImageClassification": 5,
}  # fmt: skip
"""How many of the seven each offers; a change of the library is seen here first."""


def build(name):
    import transformers

    kind = getattr(transformers, name)
    torch.manual_seed(0)
    model = kind(kind.config_class(**TYPES[name])).eval()
    draw = torch.Generator().manual_seed(0)
    ids = torch.randint(4, 40, (2, 7), generator=draw)
    if "Image" in name:
        return model, {"pixel_values": torch.randn(2, 3, 16, 16, generator=draw)}
    if "Conditional" in name:
        return model, {"input_ids": ids, "decoder_input_ids": ids.flip(1)}
    return model, {"input_ids": ids}


def call(model, batch):
    with torch.no_grad():
        return model(**batch).logits


@pytest.mark.parametrize("name", TYPES)
def test_a_listed_type_keeps_its_positions_and_its_isolation(name):
    model, batch = build(name)
    stack = find_stacks(model)[0 if "Image" in name else -1]
    assert len(available(stack.family)) == POSITIONS[name]
    plain = call(model, batch)
    several = {"stack": stack.name}
    inserted = [dp.insert(model, each, **several) for each in available(stack.family)]
    assert torch.equal(call(model, batch), plain)
    for each in inserted:
        each.remove()
    assert torch.equal(call(model, batch), plain)
    inserted = [
        dp.insert(model, "between_blocks", initial_ratio=0.1, **several),
        dp.insert(model, "after_ffn", route="branch", initial_ratio=0.1, **several),
    ]
    assert (call(model, batch) - plain).abs().max() > 1e-6
    report = dp.audit(model, batch, questions=("future", "padding", "cache", "neighbour"))
    assert not report.leaks, report
    profile = dp.probe(model, batch, baseline=False, causality=False)
    assert profile.blocks == 2
    assert profile.faithful


def test_one_block_run_many_times_is_measured_at_every_depth():
    model, batch = build("AlbertForMaskedLM")
    assert len(recognise(model).blocks) == 1
    profile = dp.probe(model, batch, baseline=False)
    with torch.no_grad():
        states = model.albert(**batch, output_hidden_states=True).hidden_states
    sizes = [float(u.square().mean().sqrt()) for u in states]
    assert profile["energy.size"].values == pytest.approx(sizes, rel=0.05)
    assert len(set(profile["rank.token_cosine"].values)) == 3


def test_several_stacks_are_named_and_one_is_chosen():
    model, batch = build("T5ForConditionalGeneration")
    with pytest.raises(ValueError, match=r"'encoder.block' \(2 blocks\), 'decoder.block'"):
        dp.insert(model, "after_ffn")
    both = [dp.insert(model, "after_ffn", stack=f"{each}.block") for each in ("encoder", "decoder")]
    assert [layer.is_causal for each in both for layer in each.layers.values()] == [
        False, False, True, True
    ]  # fmt: skip
    chosen = dp.probe(model, batch, baseline=False, stack="encoder.block")
    assert chosen.blocks == 2
    assert any("encoder.block" in note for note in dp.probe(model, batch, baseline=False).notes)
    with pytest.raises(ValueError, match=r"`stack`.*got 'decode'"):
        dp.insert(model, "after_ffn", stack="decode")


def test_nanogpts_own_blocks_need_no_description():
    model, ids = GPT().eval(), torch.randint(0, 23, (2, 8))
    stack = recognise(model)
    assert stack.name == "h"
    assert [len(stack.blocks), stack.family.is_causal(stack.blocks[0].parts)] == [2, True]
    inserted = dp.insert(model, "after_attention", route="stream", initial_ratio=0.1)
    assert all(layer.is_causal for layer in inserted.layers.values())
    assert not dp.check_causality(model, (ids, ids)).leaks
    assert dp.diagnose(model, (ids, ids)).trajectory.blocks == 2


def test_a_hybrids_other_blocks_are_part_of_the_stack():
    import transformers

    config = transformers.JambaConfig(
        **BASE, num_key_value_heads=2, attn_layer_period=2, attn_layer_offset=1,
        expert_layer_period=2, num_experts=2, mamba_d_state=4, mamba_dt_rank=4,
        use_mamba_kernels=False, pad_token_id=0,
    )  # fmt: skip
    torch.manual_seed(0)
    model = transformers.JambaForCausalLM(config).eval()
    ids = torch.randint(4, 40, (2, 7))
    dp.insert(model, "after_attention", initial_ratio=0.1)
    report = dp.audit(model, ids, causal=True, questions=("future", "padding"))
    assert not report.leaks, report


class Ends(nn.Module):
    """Blocks that mix and add nothing: only their two ends are known."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Sequential(nn.Linear(8, 8), Mean()) for _ in range(2))

    def forward(self, u):
        for layer in self.layers:
            u = layer(u)
        return u


class Mean(nn.Module):
    def forward(self, u):
        return torch.tanh(u + u.mean(dim=1, keepdim=True))


def test_a_stack_that_adds_no_terms_has_its_two_ends():
    (stack,), reason = trace(Ends())
    assert reason == ""
    assert {each.value for each in available(stack.family)} == {
        "after_embedding", "after_ffn", "between_blocks"
    }  # fmt: skip


def test_why_nothing_was_found_is_kept():
    assert trace(nn.Linear(3, 3)) == ([], "no container of modules keeps the shape of one stream")
    assert trace(nn.Identity()) == ([], "no tiny input could be made for it")


def test_a_batch_that_the_model_does_not_take_is_the_reason_itself():
    with pytest.raises(ValueError, match=r"^`batch`.*words"):
        dp.insert(Ends(), "after_embedding", batch={"words": torch.ones(1)})
