"""Models and insertions go to a hub and come back, by the hub's own library over real HTTP."""

import os
import subprocess
import sys
import textwrap

import pytest

from depthpde.models.hub import check_name_on_hub, fetch
from hub.local_hub import local_hub

PUSH = textwrap.dedent("""
    import torch
    import depthpde as dp
    settings = dp.ModelConfig(dim=16, heads=2, blocks=1, vocabulary=9, length=12, classes=3)
    model = dp.Classifier(settings)
    print(model.push_to_hub("somebody/model", card=dp.model_card(model)))
    again = dp.Classifier.from_pretrained("somebody/model")
    assert torch.equal(again.head.weight, model.head.weight)

    def make():
        torch.manual_seed(0)
        return torch.nn.TransformerEncoderLayer(16, 2, batch_first=True).eval()

    layer = make()
    inserted = dp.insert(layer, "after_ffn", initial_ratio=0.1)
    inserted.push_to_hub("somebody/insertion")
    other, u = make(), torch.randn(2, 5, 16)
    dp.insert_from(other, "somebody/insertion")
    assert torch.equal(other(u), layer(u))
""")


def test_a_push_and_a_fetch_over_http(tmp_path):
    pytest.importorskip("huggingface_hub", reason="needs the extra hf")
    with local_hub() as (address, repositories):
        about = {"HF_ENDPOINT": address, "HF_HOME": str(tmp_path), "HF_TOKEN": "hf_local"}
        about |= {"HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", PUSH],
            capture_output=True, text=True, env=os.environ | about, timeout=240, cwd=tmp_path,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == f"{address}/somebody/model"
    assert set(repositories["somebody/model"]) == {"README.md", "config.json", "model.safetensors"}
    assert set(repositories["somebody/insertion"]) == {
        "README.md", "insertion.json", "insertion.safetensors"
    }  # fmt: skip
    card = repositories["somebody/insertion"]["README.md"].decode()
    assert "Diffusion · after_ffn" in card
    assert 'dp.insert_from(model, "owner/name")' in card


def test_a_name_that_is_none_is_told_what_one_is():
    with pytest.raises(ValueError, match=r"`name` must be that of a repository .* 'owner/name'"):
        check_name_on_hub("model")


def test_a_folder_needs_no_hub(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert fetch(tmp_path, ()) == tmp_path
    assert fetch("./a/b", ()).name == "b"
    with pytest.raises(ValueError, match=r"the hub needs huggingface_hub.*depthpde\[hf\]"):
        fetch("somebody/model", ())
