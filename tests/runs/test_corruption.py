"""Noise is the same for every model, and few examples are spread over the split."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from depthpde.data.reader import Split, read_split
from depthpde.data.task import TaskKind
from depthpde.runs.corruption import corrupt, some_examples
from depthpde.runs.execute import execute
from depthpde.runs.settings import build_run


def a_split(kind=TaskKind.IMAGE, vocabulary=256, shift=0, value=128):
    tokens = np.full(40_000, value, dtype=np.uint8)
    return Split(
        name="test", kind=kind, shift=shift, length=100, padding=None, mask_zero_pixels=False,
        vocabulary=vocabulary, classes=2, tokens=tokens, offsets=np.arange(0, 40_001, 100),
        labels=np.arange(400) % 2, pairs=None,
    )  # fmt: skip


def test_grey_noise_has_its_standard_deviation_and_stays_in_range():
    moved = corrupt(a_split(), 0.04).tokens.astype(float)
    assert moved.std() == pytest.approx(0.04 * 255, rel=0.02)
    assert moved.mean() == pytest.approx(128, abs=0.2)
    edge = corrupt(a_split(value=0), 0.5).tokens
    assert edge.min() == 0
    assert (edge == 0).mean() == pytest.approx(0.5, abs=0.02)


def test_a_share_of_symbols_is_replaced_by_any_symbol():
    split = a_split(TaskKind.SEQUENCE, vocabulary=17, shift=1, value=3)
    found = corrupt(split, 0.2).tokens
    assert (found != 3).mean() == pytest.approx(0.2 * 15 / 16, abs=0.01)
    assert set(np.unique(found)) == set(range(16))


def test_noise_is_the_same_at_every_call_and_none_changes_nothing():
    split = a_split()
    assert np.array_equal(corrupt(split, 0.1).tokens, corrupt(split, 0.1).tokens)
    assert np.array_equal(corrupt(split, 0.0).tokens, split.tokens)
    assert not np.array_equal(corrupt(split, 0.1, seed=1).tokens, corrupt(split, 0.1).tokens)


def test_few_examples_stand_at_even_distances_with_their_labels():
    whole = a_split()
    whole.tokens[:] = np.repeat(np.arange(400) // 2, 100)
    sorted_by_label = replace(whole, labels=np.repeat([0, 1], 200))
    split = some_examples(sorted_by_label, 8)
    assert (len(split), len(split.tokens)) == (8, 800)
    assert np.bincount(split.labels).tolist() == [4, 4]
    assert [int(split.ids(k)[0]) for k in range(8)] == [25 * k for k in range(8)]
    every = some_examples(whole, 400)
    assert np.array_equal(every.tokens, whole.tokens)
    assert np.array_equal(every.offsets, whole.offsets)


def test_what_neither_can_do_is_refused():
    language = a_split(TaskKind.LANGUAGE)
    with pytest.raises(ValueError, match="`corruption` must be of an image or a sequence task"):
        corrupt(language, 0.1)
    with pytest.raises(ValueError, match="`examples` must be of an image or a sequence task"):
        some_examples(language, 3)
    with pytest.raises(ValueError, match=r"`examples` must be at most 400, .* got 401"):
        some_examples(a_split(), 401)
    with pytest.raises(ValueError, match=r"`level` must lie in \[0, 1\], got 2"):
        corrupt(a_split(), 2)


def test_a_run_trains_on_few_examples_and_its_record_tells_what_noise_does(prepared, tmp_path):
    bare = {"training.updates": 2, "training.warmup": 1, "model.dim": 8, "model.blocks": 1}
    asked = bare | {"corruption": [0.0, 1.0], "examples": 8, "training.batch_size": 8}
    run = build_run("listops-mini", settings=asked)
    result = execute(run, tmp_path, prepared=prepared).result
    assert list(result["corrupted"]) == ["0", "1"]
    assert result["corrupted"]["0"] == result["test"]["accuracy"]
    clean = build_run("listops-mini", settings=bare)
    assert (clean.corruption, clean.examples) == (None, None)
    assert "corrupted" not in execute(clean, tmp_path, prepared=prepared).result
    assert len(read_split(Path(prepared) / "listops-mini", "train")) > 8
    with pytest.raises(ValueError, match=r"`corruption` must lie in \[0, 1\], got 3"):
        build_run("listops-mini", settings={"corruption": [3]})
