"""A finished model is read again: near sites alone, blocks in another order, longer, finer."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import depthpde as dp
from depthpde.data.reader import read_split
from depthpde.data.task import TaskKind
from depthpde.runs.readings import (
    carried,
    cut,
    limited_attention,
    read_again,
    read_place,
    shuffle_blocks,
)
from depthpde.runs.run import RunConfig

SMALL = {"train": 40, "validation": 10, "test": 30}
TINY = {"model.dim": 16, "model.heads": 1, "training.updates": 1}


@pytest.fixture(scope="module")
def listops(tmp_path_factory):
    out = tmp_path_factory.mktemp("prepared")
    dp.prepare(replace(dp.tasks["listops-mini"], splits=SMALL), out=out)
    return read_split(out / "listops-mini", "test")


def test_no_site_sees_beyond_the_window_and_the_whole_is_put_back():
    layer = dp.Attention(16, 1).eval()
    u = torch.randn(2, 20, 16)
    whole = layer(u)
    far = u.clone()
    far[:, 10:] += 1
    with limited_attention(layer, 3):
        near, changed = layer(u), layer(far)
    torch.testing.assert_close(near[:, :7], changed[:, :7])
    assert not torch.allclose(near[:, 7], changed[:, 7])
    assert torch.equal(layer(u), whole)
    with limited_attention(layer, 20):
        torch.testing.assert_close(layer(u), whole)


def test_a_window_keeps_padding_and_the_future_out():
    u, mask = torch.randn(1, 12, 16), torch.arange(12)[None] < 7
    for causal in (False, True):
        layer = dp.Attention(16, 1, causal=causal).eval()
        with limited_attention(layer, 4):
            short = layer(u[:, :7])
            torch.testing.assert_close(layer(u, valid_mask=mask)[:, :7], short)


def test_a_model_that_forms_its_weights_has_no_window():
    with (
        pytest.raises(ValueError, match="forms no weights, got one that does"),
        limited_attention(dp.Attention(16, 1, explicit=True), 3),
    ):
        pass
    with (
        pytest.raises(ValueError, match="got one with nothing of the kind"),
        limited_attention(torch.nn.Linear(2, 2), 3),
    ):
        pass


def test_blocks_stay_whole_and_change_their_places(listops):
    shuffled = shuffle_blocks(listops, 8)
    assert not np.array_equal(shuffled.tokens, listops.tokens)
    for a, b in zip(listops.offsets[:-1], listops.offsets[1:], strict=True):
        before, after = np.array(listops.tokens[a:b]), np.array(shuffled.tokens[a:b])
        assert np.array_equal(np.sort(before), np.sort(after))
        blocks = {tuple(before[at : at + 8]) for at in range(0, b - a, 8)}
        assert tuple(after[-8:]) in blocks or len(before) % 8
    assert np.array_equal(shuffle_blocks(listops, 8).tokens, shuffled.tokens)
    assert np.array_equal(shuffle_blocks(listops, 256).tokens, listops.tokens)


@pytest.fixture
def pairs(listops):
    """Documents end to end, and pairs of their numbers."""
    numbers, labels = np.array([[0, 1], [1, 2], [3, 3], [2, 4]]), np.array([0, 1, 1, 0])
    return replace(cut(listops, 100), kind=TaskKind.PAIR, classes=2, pairs=numbers, labels=labels)


def test_both_documents_of_a_pair_have_their_blocks_in_another_order(pairs):
    shuffled = shuffle_blocks(pairs, 8)
    assert np.array_equal(shuffled.pairs, pairs.pairs)
    for document in range(5):
        before, after = pairs.ids(document), shuffled.ids(document)
        assert not np.array_equal(before, after)
        assert np.array_equal(np.sort(before), np.sort(after))


def test_a_pair_task_is_read_in_windows_and_in_shuffled_blocks(pairs):
    run = dp.build_run("retrieval-mini", settings=TINY | {"windows": [2, 300], "shuffles": [8]})
    model = run.build().eval()
    found = read_again(model, pairs, run, _none)
    assert {name: set(each) for name, each in found.items()} == {
        "windowed": {"2", "300"},
        "shuffled": {"8"},
    }
    assert found["windowed"]["300"] == pytest.approx(dp.evaluate(model, pairs).accuracy)


def test_examples_are_cut_from_their_start(listops):
    short = cut(listops, 10)
    assert short.lengths().max() == 10
    assert np.array_equal(short.tokens[:10], listops.tokens[:10])


def test_other_kinds_of_tasks_are_refused(listops):
    with pytest.raises(
        ValueError, match="`shuffles` must be of an image, a sequence or a pair task"
    ):
        shuffle_blocks(replace(listops, kind="language"), 8)
    with pytest.raises(ValueError, match="a length for sequences alone"):
        cut(replace(listops, kind="image"), 8)
    with pytest.raises(ValueError, match="must be TASK or TASK/LENGTH"):
        read_place("text/long")


def test_a_run_reads_what_it_asks_for_and_no_more(listops):
    run = dp.build_run("listops-mini", settings=TINY)
    assert read_again(run.build(), listops, run, _none) == {}
    asked = replace(run, windows=(2, 300), shuffles=(4,), corruption=(0.5,), transfer=("mnist",))
    model = asked.build()
    found = read_again(model, listops, asked, _none)
    assert {name: set(each) for name, each in found.items()} == {
        "windowed": {"2", "300"},
        "shuffled": {"4"},
        "corrupted": {"0.5"},
    }
    assert found["windowed"]["300"] == pytest.approx(dp.evaluate(model, listops).accuracy)


def _none(name: str):
    raise AssertionError(f"{name} is of another family")


def test_longer_texts_are_read_with_the_same_weights():
    settings = TINY | {"model.encoding": "none", "model.positions": ["after_embedding"]}
    run = dp.build_run("text-mini", settings=settings)
    model, tokens = run.build().eval(), torch.randint(1, 257, (2, 64))
    longer = carried(model, run, "text/512").eval()
    assert longer.config.length == 512
    torch.testing.assert_close(longer(tokens), model(tokens))


def _plane(layer) -> RunConfig:
    model = {"encoding": "none", "geometry": "plane", "positions": ["after_embedding"]}
    return dp.build_run(
        "mnist-mini", settings=TINY | {f"model.{k}": v for k, v in model.items()}
        | {f"model.layer.{k}": v for k, v in layer.items()},
    )  # fmt: skip


def test_half_the_distance_means_four_times_the_steps():
    run = _plane({"kind": "diffusion", "steps": 2})
    finer = carried(run.build(), run, "mnist")
    (layer,) = (each for each in finer.modules() if type(each) is dp.Diffusion)
    assert layer.problem.steps == 8
    assert finer.config.grid == (28, 28)


def test_taps_are_put_two_pixels_apart():
    run = _plane({"kind": "learned_stencil", "steps": 2})
    model = run.build()
    (before,) = (each.taps for each in model.modules() if type(each) is dp.LearnedStencil)
    finer = carried(model, run, "mnist")
    (after,) = (each.taps for each in finer.modules() if type(each) is dp.LearnedStencil)
    assert torch.equal(after[::2], before)
    assert after[1::2].eq(0).all()


@pytest.mark.parametrize(
    ("task", "place", "words"),
    [
        ("text-mini", "text", "without learned positions"),
        ("mnist-mini", "mnist/400", "a length for sequences alone"),
        ("listops-mini", "nonsense", "nonsense"),
    ],
)
def test_what_could_not_be_read_in_the_end_is_not_trained(task, place, words, tmp_path):
    asked = replace(dp.build_run(task, settings=TINY), transfer=(place,))
    with pytest.raises(ValueError, match=words):
        dp.execute(asked, tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("diffusion", [0.0, 0.1])
def test_a_simulator_is_not_carried_over_as_a_network_of_its_weights(diffusion, tmp_path):
    """Its weights were read as a Transformer's; with diffusion the run failed when it had ended."""
    simulator = {"method": "lie", "steps": 4, "diffusion": diffusion}
    settings = TINY | {"model.encoding": "none", "simulator": simulator}
    asked = replace(dp.build_run("text-mini", settings=settings), transfer=("text",))
    with pytest.raises(ValueError, match=r"`transfer` must be of a network .* a simulator by lie"):
        dp.execute(asked, tmp_path)
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_carried_over_is_refused():
    learned = dp.build_run("mnist-mini", settings=TINY)
    with pytest.raises(ValueError, match="without learned positions"):
        carried(learned.build(), learned, "mnist")
    bare = dp.build_run("mnist-mini", settings=TINY | {"model.encoding": "none"})
    with pytest.raises(ValueError, match="whole multiple of 14 × 14"):
        carried(bare.build(), bare, "image")
    line = dp.build_run(
        "mnist-mini",
        settings=TINY | {"model.encoding": "none", "model.positions": ["after_embedding"]},
    )
    with pytest.raises(ValueError, match="must be in the plane"):
        carried(line.build(), line, "mnist")
    mixed = _plane({"kind": "multiscale"})
    with pytest.raises(ValueError, match="got multiscale"):
        carried(mixed.build(), mixed, "mnist")
