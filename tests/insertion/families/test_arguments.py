"""Whose mask and whose cache: found by runs, also where sizes are equal."""

import pytest
import torch
import transformers

import depthpde as dp

IDS = torch.randint(5, 40, (2, 7), generator=torch.Generator().manual_seed(0))
BATCH = {"input_ids": IDS, "decoder_input_ids": IDS.flip(0)}  # as long as each other


def bart():
    torch.manual_seed(0)
    sides = {
        f"{side}_{name}": value
        for side in ("encoder", "decoder")
        for name, value in {"layers": 2, "attention_heads": 2, "ffn_dim": 24}.items()
    }
    config = transformers.BartConfig(
        vocab_size=40, d_model=16, max_position_embeddings=48, decoder_start_token_id=2, **sides
    )
    return transformers.BartForConditionalGeneration(config).eval()


@pytest.mark.parametrize(
    ("at", "causal", "mask", "cache"),
    [
        ("model.encoder.layers.0.fc2", False, "attention_mask", None),
        ("model.decoder.layers.0.fc2", True, "decoder_attention_mask", "past_key_values"),
    ],
)
def test_an_encoder_and_a_decoder_of_one_length_are_told_apart(at, causal, mask, cache):
    model = bart()
    family = dp.insert(model, at=at, causal=causal, batch=BATCH, initial_ratio=0.2).family
    assert (family.padding.argument, family.padding.of_model) == (mask, True)
    assert (family.cache and family.cache.argument) == cache
    report = dp.audit(model, BATCH, questions=["future", "padding", "cache"])
    assert not report.leaks, report


def test_what_every_block_is_given_is_read_there():
    family = dp.insert(bart(), "after_ffn", stack="model.decoder.layers", batch=BATCH).family
    assert not family.padding.of_model
    assert not family.cache.of_model


def test_a_hybrid_whose_blocks_are_not_all_given_the_mask_reads_the_models():
    torch.manual_seed(0)
    config = transformers.NemotronHConfig(
        vocab_size=40, hidden_size=16, intermediate_size=24, num_attention_heads=2,
        num_key_value_heads=2, head_dim=8, layers_block_type=["mamba", "attention", "moe"],
        ssm_state_size=4, mamba_num_heads=4, mamba_head_dim=8, n_groups=1, chunk_size=8,
        n_routed_experts=2, num_experts_per_tok=1, moe_intermediate_size=16,
        moe_shared_expert_intermediate_size=16, pad_token_id=0,
    )  # fmt: skip
    model = transformers.NemotronHForCausalLM(config).eval()
    family = dp.insert(model, "between_blocks").family
    assert family.padding.of_model
    assert family.cache.of_model
    report = dp.audit(model, IDS, questions=["padding", "cache"])
    assert not report.leaks, report
