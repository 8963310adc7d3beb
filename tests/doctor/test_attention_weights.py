"""No crash on any model: what cannot be measured is named with its reason."""

import math

import pytest
import torch

from depthpde.doctor.attention_weights import _rotate
from depthpde.doctor.diagnosis import diagnose

SMALL = {
    "vocab_size": 29, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "intermediate_size": 64, "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 1,
    "eos_token_id": 2,
}  # fmt: skip
GROUPED = SMALL | {"num_key_value_heads": 2, "head_dim": 8}
EXPERTS = {
    "num_experts_per_tok": 2, "num_experts": 4, "moe_intermediate_size": 16,
    "shared_expert_intermediate_size": 16,
}  # fmt: skip
PARTLY_ROTATED = {
    "Glm": GROUPED,
    "Nemotron": SMALL | {"num_key_value_heads": 2},
    "StableLm": SMALL | {"num_key_value_heads": 2},
    "Glm4Moe": GROUPED
    | {"n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16,
       "first_k_dense_replace": 1, "n_group": 1, "topk_group": 1},
    "GptOss": GROUPED | {"num_local_experts": 4, "num_experts_per_tok": 2},
    "Laguna": GROUPED | EXPERTS,
}  # fmt: skip
REMADE = ("Nemotron", "StableLm", "Glm4Moe")
"""Those whose attention is a plain softmax after a rotation of half turns."""


def build(name, kind, settings):
    import transformers

    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(**settings)
    return getattr(transformers, f"{name}{kind}")(config).eval()


def ids():
    return torch.randint(3, 29, (3, 7), generator=torch.Generator().manual_seed(1))


@pytest.mark.filterwarnings("ignore")  # of the library, about its own tiny configs
@pytest.mark.parametrize("name", PARTLY_ROTATED)
def test_rotary_tables_narrower_than_a_head_do_not_end_a_diagnosis(name):
    model = build(name, "ForCausalLM", PARTLY_ROTATED[name])
    found = diagnose(model, {"input_ids": ids()}, baseline=False)
    assert ("attention.entropy" in found.trajectory) is (name in REMADE)
    if name not in REMADE:
        assert "not a plain softmax" in found.unmeasured["attention entropy"]


def test_convbert_is_diagnosed_but_for_its_weights():
    settings = SMALL | {"embedding_size": 32, "head_ratio": 2}
    found = diagnose(build("ConvBert", "Model", settings), ids(), baseline=False)
    assert "shapes" in found.unmeasured["spectra of weights"]
    assert "drift.cosine" in found.trajectory


@pytest.mark.filterwarnings("ignore")  # of the library, about its own tiny configs
@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("Qwen3", {}),  # head by head
        ("Gemma3", {"query_pre_attn_scalar": 8, "layer_types": ["full_attention"] * 2}),
        ("Olmo2", {}),  # all heads at once
    ],
)
def test_queries_and_keys_pass_their_norms(name, more):
    settings = GROUPED | more
    text = "Text" * (name == "Gemma3")
    import transformers

    torch.manual_seed(0)
    config = getattr(transformers, f"{name}{text}Config")(**settings)
    model = getattr(transformers, f"{name}ForCausalLM")(config).eval()
    attention = model.model.layers[1].self_attn
    with torch.no_grad():  # norms that are not the same for all features
        for norm in (attention.q_norm, attention.k_norm):
            norm.weight.add_(torch.rand(norm.weight.shape))
    found = diagnose(model, {"input_ids": ids()}, baseline=False)
    assert "attention.entropy" in found.trajectory, found.unmeasured
    assert not found.conditions


def test_a_rotation_leaves_the_features_beyond_its_tables_alone():
    u = torch.randn(1, 2, 3, 6)
    angle = torch.full((1, 3, 4), math.pi / 2)
    turned = _rotate(u, (angle.cos(), angle.sin()))
    torch.testing.assert_close(turned[..., 4:], u[..., 4:])
    torch.testing.assert_close(turned[..., :2], -u[..., 2:4])
    torch.testing.assert_close(turned[..., 2:4], u[..., :2])
