"""Uninitialised memory is NaN, nothing stays compiled, Triton is interpreted, Ctrl-C is heard."""

import os
import signal
import sys

os.environ.setdefault("TRITON_INTERPRET", "1")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as under `pytest … &`; children inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)

import hypothesis
import pytest
import torch

hypothesis.settings.register_profile("repeatable", deadline=None, derandomize=True)
hypothesis.settings.load_profile("repeatable")


@pytest.fixture(autouse=True, scope="session")
def _uninitialised_memory_is_nan():
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = True


@pytest.fixture(autouse=True)
def _nothing_stays_compiled():
    yield
    dynamo = sys.modules.get("torch._dynamo.eval_frame")
    if dynamo is not None and dynamo.cached_backends:
        torch.compiler.reset()


@pytest.fixture(autouse=True)
def _no_condition_stays_registered():
    yield
    thresholds = sys.modules.get("depthpde.doctor.thresholds")
    for name in list(thresholds.OWN) if thresholds is not None else ():
        del thresholds.OWN[name], thresholds.CONDITIONS[name]


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


@pytest.fixture(scope="session")
def browser():
    """Open one browser for all tests."""
    from web.browser import CHROMIUM, Browser

    if CHROMIUM is None:
        pytest.skip("Chromium is not installed: apt-get install chromium")
    with Browser() as opened:
        yield opened
