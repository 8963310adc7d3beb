"""Answers follow from their own episode, and from no table of what stands before them."""

import json
from dataclasses import replace

import numpy as np

import depthpde as dp
from depthpde.data.recipes.recall import (
    CLOSE,
    EPISODE,
    NAMES,
    OPEN,
    PAIRS,
    associative_recall,
    copying,
)


def test_every_answer_is_the_value_of_its_key_in_the_same_episode():
    for episode in associative_recall(200, seed=3):
        pairs, answers = episode[: 2 * PAIRS].reshape(-1, 2), episode[2 * PAIRS :].reshape(-1, 2)
        bound = dict(pairs.tolist())
        assert len(bound) == PAIRS, "keys of an episode differ"
        assert all(bound[key] == value for key, value in answers.tolist())
        assert pairs[:, 0].max() < NAMES <= pairs[:, 1].min()


def test_values_are_bound_anew_in_every_episode():
    found = associative_recall(4000, seed=3)[:, : 2 * PAIRS].reshape(-1, 2)
    counts = np.zeros((NAMES, NAMES))
    np.add.at(counts, (found[:, 0], found[:, 1] - NAMES), 1)
    shares = counts / counts.sum(axis=1, keepdims=True)
    assert shares.max() < 0.08, "1/32 is chance"


def test_the_second_half_of_copying_is_the_first():
    found = copying(100, seed=1)
    assert np.array_equal(found[:, 1 : EPISODE // 2], found[:, EPISODE // 2 + 1 :])
    assert set(found[:, 0]) == {OPEN}
    assert set(found[:, EPISODE // 2]) == {CLOSE}


def test_a_longer_stream_only_adds_episodes():
    for draw in (associative_recall, copying):
        assert np.array_equal(draw(20, seed=5)[:7], draw(7, seed=5))


def test_what_is_prepared_says_how_much_the_context_tells(tmp_path):
    sizes = {"train": 12_800, "validation": 1280, "test": 1280}
    for name, printed in (("recall-mini", 28.12), ("copying-mini", 53.86)):
        task = replace(dp.tasks[name], splits=sizes)
        dp.prepare(task, out=tmp_path)
        facts = json.loads((tmp_path / name / "manifest.json").read_text())["facts"]
        assert facts["told_by_the_context"] == printed
        assert facts["baselines"]["after_one_byte"] < 8.0
        assert dp.load(name, "test", out=tmp_path).tokens.max() < task.vocabulary
