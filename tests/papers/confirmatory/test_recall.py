"""One block and two, every mixing; Canon has a bounded twin of its reach."""

from __future__ import annotations

from depthpde.layers.rivals import Canon
from depthpde.papers.confirmatory.recall import BLOCKS, EXPERIMENT, MIXINGS, PROTOCOL


def built(label):
    (run,) = (
        r for c, r in EXPERIMENT.plan(seeds=1).cells if c.variant == label and "copy" in c.task
    )
    return run.build()


def test_the_protocol_is_the_one_that_was_committed_before_the_first_run():
    assert PROTOCOL.digest == "ea5dd2bcda783069"


def test_every_mixing_is_trained_with_one_block_and_with_two():
    runs = EXPERIMENT.plan(seeds=1).cells
    assert len(runs) == 2 * len(BLOCKS) * len(MIXINGS)
    assert {run.model.blocks for _, run in runs} == set(BLOCKS)
    assert all(run.build().config.causal for _, run in runs[:2])


def test_on_keys_is_on_queries_and_keys_and_not_on_values():
    names = [n for n, m in built("Canon on keys, 1 block").named_modules() if type(m) is Canon]
    assert len(names) == 2
    assert {name.split("_")[-1].split(".")[0] for name in names} == {"query", "key"}
