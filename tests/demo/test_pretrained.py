"""MiniLM in torch's modules is the published model: same tokens, same field, checked files."""

import shutil
import sys

import pytest
import torch

from depthpde.demo import pretrained

FOLDER = pretrained.find_files()
needs_minilm = pytest.mark.skipif(FOLDER is None, reason=pretrained.HOW)
SENTENCES = ["The quick brown fox-jumps, naïvely!", "Unbelievable 漢 tokenization."]


@needs_minilm
def test_tokens_and_field_are_those_of_transformers():
    transformers = pytest.importorskip("transformers")
    known = transformers.AutoTokenizer.from_pretrained(FOLDER)(
        SENTENCES, padding=True, return_tensors="pt"
    )
    batch = pretrained.tokenize(SENTENCES, FOLDER)
    assert torch.equal(batch["input_ids"], known.input_ids)
    model, other = pretrained.load_minilm(FOLDER), transformers.AutoModel.from_pretrained(FOLDER)
    with torch.no_grad():
        ours, theirs = model(**batch), other.eval()(**known).last_hidden_state
    real = batch["attention_mask"]
    torch.testing.assert_close(ours[real], theirs[real], atol=1e-5, rtol=1e-4)
    assert pretrained.PACKAGE not in sys.modules, "none of the package's code is run"


@needs_minilm
def test_another_file_is_refused(tmp_path):
    for name in pretrained.DIGESTS:
        shutil.copy(FOLDER / name, tmp_path)
    (tmp_path / "vocab.txt").write_text("other")
    with pytest.raises(ValueError, match="07eced375cec"):
        pretrained.load_minilm(tmp_path)


def test_a_package_that_is_not_installed_is_no_error(monkeypatch):
    monkeypatch.setattr(pretrained, "PACKAGE", "no_such_package")
    assert pretrained.find_files() is None


def test_a_word_is_cut_into_the_longest_pieces():
    table = {"un": 1, "##believ": 2, "##able": 3, "##be": 4, "[UNK]": 9}
    assert pretrained._pieces("unbelievable", table) == [1, 2, 3]
    assert pretrained._pieces("unx", table) == [9]
