"""transformers' Auto classes load, train and save our models; importing us imports none of it."""

import json
import subprocess
import sys

import pytest
import torch

import depthpde as dp
from depthpde.hub.register import register_auto_classes

transformers = pytest.importorskip("transformers", reason="needs the extra hf")
SMALL = dp.ModelConfig(
    dim=16, blocks=1, heads=2, vocabulary=20, length=12, positions=("after_embedding",)
)


@pytest.fixture(scope="module", autouse=True)
def registered():
    register_auto_classes()
    register_auto_classes()  # twice is once


@pytest.fixture
def tokens():
    return torch.randint(1, 20, (3, 9), generator=torch.Generator().manual_seed(0))


def make_classifier():
    from dataclasses import replace

    return dp.Classifier(replace(SMALL, classes=3)).eval()


def test_a_saved_classifier_is_loaded_to_the_bit_and_comes_back(tmp_path, tokens):
    ours = make_classifier()
    folder = ours.save_pretrained(tmp_path / "ours")
    config = transformers.AutoConfig.from_pretrained(folder)
    assert (config.model_type, config.model) == ("depthpde", "Classifier")
    auto = transformers.AutoModelForSequenceClassification.from_pretrained(folder)
    mask = torch.ones_like(tokens)
    mask[1, 5:] = 0
    found = auto(input_ids=tokens, attention_mask=mask, labels=torch.tensor([0, 1, 2]))
    assert torch.equal(found.logits, ours(tokens, mask.bool()))
    wanted = torch.nn.functional.cross_entropy(found.logits, torch.tensor([0, 1, 2]))
    torch.testing.assert_close(found.loss, wanted)
    auto.save_pretrained(tmp_path / "theirs")
    back = dp.Classifier.from_pretrained(tmp_path / "theirs")
    assert torch.equal(back(tokens), ours(tokens))
    assert back.config == ours.config


def test_a_language_model_generates_what_ours_does(tmp_path, tokens):
    ours = dp.LanguageModel(SMALL).eval()
    auto = transformers.AutoModelForCausalLM.from_pretrained(ours.save_pretrained(tmp_path))
    long = auto.generate(tokens[:, :4], max_new_tokens=5, do_sample=False, pad_token_id=0)
    assert torch.equal(long, ours.generate(tokens[:, :4], 5))
    loss = auto(input_ids=tokens, labels=tokens).loss
    wanted = torch.nn.functional.cross_entropy(
        ours(tokens)[:, :-1].flatten(0, 1), tokens[:, 1:].flatten()
    )
    torch.testing.assert_close(loss, wanted)


def test_ours_becomes_theirs_in_memory(tokens):
    from depthpde.hub.auto_models import DepthPDEForSequenceClassification

    ours = make_classifier()
    auto = DepthPDEForSequenceClassification.of(ours, id2label={0: "a", 1: "b", 2: "c"})
    assert torch.equal(auto(tokens).logits, ours(tokens))
    assert auto.config.num_labels == 3


def test_a_config_without_settings_says_how_to_make_one():
    from depthpde.hub.auto_models import DepthPDEConfig

    with pytest.raises(ValueError, match=r"`config` must hold .* DepthPDEConfig\.of"):
        _ = DepthPDEConfig().own


def test_a_model_of_another_kind_is_refused_not_misread(tmp_path):
    folder = dp.LanguageModel(SMALL).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"must be 'Classifier', got 'LanguageModel'; .*dp\.Lang"):
        transformers.AutoModelForSequenceClassification.from_pretrained(folder)


def test_without_transformers_it_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ValueError, match=r"pip install 'depthpde\[hf\]'"):
        register_auto_classes()


def test_the_package_and_its_models_import_no_transformers(tmp_path):
    script = "import sys, depthpde as dp; dp.Classifier; dp.register_auto_classes;" + (
        "print('transformers' in sys.modules or 'huggingface_hub' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "False", done.stderr


def test_the_config_file_stays_readable(tmp_path):
    output = json.loads((make_classifier().save_pretrained(tmp_path) / "config.json").read_text())
    assert set(output) == {"model", "model_type", "depthpde", "config"}
