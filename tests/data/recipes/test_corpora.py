import lzma
from pathlib import Path

import numpy as np
import pytest

from depthpde.data.catalog import load, prepare
from depthpde.data.reader import read_manifest
from depthpde.data.recipes import corpora
from depthpde.data.recipes.corpora import ENWIK8, baselines
from depthpde.data.tasks import TASKS


def text_of(split) -> bytes:
    return np.asarray(split.tokens).tobytes()


def test_shakespeare_is_cut_in_order(tmp_path: Path) -> None:
    (tmp_path / "tinyshakespeare").mkdir()
    text = bytes(range(256)) * 40
    (tmp_path / "tinyshakespeare" / "input.txt").write_bytes(text)
    prepare("shakespeare", data=tmp_path, out=tmp_path / "out", check=False)
    parts = [
        load("shakespeare", name, out=tmp_path / "out") for name in ("train", "validation", "test")
    ]
    assert b"".join(text_of(part) for part in parts) == text
    assert len(text_of(parts[0])) == len(text) * 9 // 10


def test_refuses_a_corpus_of_another_size_or_shorter_than_a_window(tmp_path: Path) -> None:
    (tmp_path / "shakespeare").mkdir()
    (tmp_path / "shakespeare" / "input.txt").write_bytes(b"to be " * 100)
    with pytest.raises(ValueError, match=r"input\.txt must hold 1,115,394 bytes, got 600"):
        prepare("shakespeare", data=tmp_path, out=tmp_path / "out")
    with pytest.raises(ValueError, match=r"validation.*one window"):
        prepare("shakespeare", data=tmp_path, out=tmp_path / "out", check=False)


def test_wikitext_is_read_from_files_and_needs_them_all(tmp_path: Path) -> None:
    folder = tmp_path / "wikitext-2"
    folder.mkdir()
    for name in ("valid", "test"):
        (folder / f"wiki.{name}.tokens").write_bytes(name.encode() * 2000)
    with pytest.raises(FileNotFoundError, match=r"there is no wiki\.train\.tokens or"):
        prepare("wikitext2", data=tmp_path, out=tmp_path / "out")
    prepare("wikitext2-mini", data=tmp_path, out=tmp_path / "out")
    assert len(text_of(load("wikitext2-mini", "train", out=tmp_path / "out"))) == 9_000
    (folder / "wiki.train.tokens").write_bytes(b"train" * 2000)
    prepare("wikitext2", data=tmp_path, out=tmp_path / "out")
    assert text_of(load("wikitext2", "train", out=tmp_path / "out")).startswith(b"traintrain")
    (folder / "wiki.valid.tokens").unlink()
    with pytest.raises(
        FileNotFoundError, match=r"wikitext2 needs wiki\.valid\.tokens, but .* lacks"
    ):
        prepare("wikitext2", data=tmp_path, out=tmp_path / "out")


def test_the_mini_enwik8_is_read_from_its_parts(tmp_path: Path) -> None:
    (tmp_path / "enwik8").mkdir()
    for name in ("train.first10M", "valid.90M-95M", "test.95M-100M"):
        packed = lzma.compress(name.encode() * 100)
        (tmp_path / "enwik8" / f"enwik8.{name}.xz").write_bytes(packed)
    prepare("enwik8-mini", data=tmp_path, out=tmp_path / "out")
    assert text_of(load("enwik8-mini", "test", out=tmp_path / "out")).startswith(b"test.95M")
    with pytest.raises(FileNotFoundError, match=r"enwik8 needs enwik8 .* get it from"):
        prepare("enwik8", data=tmp_path, out=tmp_path / "out")


def test_a_whole_enwik8_is_checked_and_cut_as_usual(tmp_path: Path) -> None:
    (tmp_path / "enwik8").write_bytes(b"<mediawiki" * 10)
    with pytest.raises(
        ValueError, match=f"enwik8 must have the published MD5 {ENWIK8.md5['enwik8']}"
    ):
        prepare("enwik8", data=tmp_path, out=tmp_path / "out")
    with pytest.raises(ValueError, match="enwik8 must hold 100,000,000 bytes, got 100"):
        prepare("enwik8-mini", data=tmp_path, out=tmp_path / "out", check=False)


@pytest.mark.parametrize("name", ["shakespeare", "wikitext2-mini", "enwik8-mini"])
def test_the_real_corpora_have_their_sizes(official: Path, tmp_path: Path, name: str) -> None:
    manifest = read_manifest(prepare(name, data=official, out=tmp_path))
    sizes = {split: entry["tokens"] for split, entry in manifest["splits"].items()}
    assert sizes == dict(TASKS[name].splits)
    lines = manifest["facts"]["baselines"]
    assert 0 < lines["commonest_byte"] < lines["after_one_byte"] < lines["after_two_bytes"] < 60


def test_a_table_of_the_last_bytes_is_counted_by_hand(monkeypatch) -> None:
    monkeypatch.setattr(corpora, "_PIECE", 3)  # texts longer than one piece add up
    train, test = b"xyababababacbd", b"yyabacbdab"
    counted = {}
    for known, name in enumerate(("commonest_byte", "after_one_byte", "after_two_bytes")):
        right = 0
        for at in range(2, len(test)):
            for used in range(known, -1, -1):
                before = test[at - used : at]
                after = [train[k] for k in range(2, len(train)) if train[k - used : k] == before]
                if after:
                    break
            commonest = max(sorted(set(after)), key=after.count)
            right += commonest == test[at]
        counted[name] = 100 * right / 8
    found = baselines(*(np.frombuffer(text, dtype=np.uint8) for text in (train, test)))
    assert found == pytest.approx(counted)
    assert counted == {"commonest_byte": 37.5, "after_one_byte": 75.0, "after_two_bytes": 87.5}
