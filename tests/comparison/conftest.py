"""A small task, and comparisons of it made once."""

import numpy as np
import pytest

import depthpde as dp

SMALL = {"model": {"dim": 8, "blocks": 1, "heads": 2}, "training": {"updates": 4}}


def make_task():
    draw = np.random.default_rng(0)
    labels = np.arange(40) % 2
    return dp.Task.from_arrays(
        "waves", draw.normal(size=(40, 10, 2)) + labels[:, None, None], labels
    )


@pytest.fixture(scope="session")
def task():
    return make_task()


@pytest.fixture(scope="session")
def compared(task, tmp_path_factory):
    out = tmp_path_factory.mktemp("compare")
    here = dp.InProcess(dp.Folders(out, prepared=out / "tasks"))
    variants = {
        "plain": {},
        "diffusion": {"positions": ("after_embedding", "between_blocks")},
        "convolution": dp.Variant(
            "any", "a control", model={"positions": ("after_embedding",), "layer": "depthwise_conv"}
        ),
    }
    return dp.compare(task, variants, seeds=2, executor=here, **SMALL)
