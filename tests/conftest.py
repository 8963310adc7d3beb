"""Uninitialised memory is NaN, nothing stays compiled, Triton is interpreted, Ctrl-C is heard."""

import os
import signal
import sys

os.environ.setdefault("TRITON_INTERPRET", "1")
# Some virtual machines announce AMX and do not carry it: torch's 16-bit products then die of an
# illegal instruction. Everything below AMX is allowed; child processes inherit it.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as under `pytest … &`; children inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)

from pathlib import Path

import hypothesis
import pytest
import torch

from drills.table import Row, about, fill, today

ROWS: list[Row] = []
"""What the drills told, for the table."""
RAN: set[str] = set()
"""Files of tests that ran, below tests/."""

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


def pytest_addoption(parser):
    parser.addoption("--table", type=Path, help="page whose table of drills is brought up to date")


def pytest_configure(config):
    part = config.option.keyword or any("::" in each for each in config.args)
    if config.option.table is not None and part:
        raise pytest.UsageError("--table wants whole files of drills, got a part; leave out -k, ::")


@pytest.fixture
def tally(request):
    """Report what a drill tried, how often, and what held; it travels with the test's report."""
    printed = request.node.user_properties
    return lambda tried, times, held: printed.append(("drill", (tried, times, held)))


def pytest_runtest_logreport(report):
    """Keep what drills told, and which failed or could not be made."""
    by = report.nodeid.partition("::")[0].removeprefix("tests/")
    RAN.add(by)
    if report.failed or (report.skipped and report.when == "setup"):
        why = report.longrepr[2] if report.skipped and isinstance(report.longrepr, tuple) else ""
        held = f"not tried here. {why}" if report.skipped else "failed"
        test = report.nodeid.partition("::")[2]
        ROWS.append(Row(f"`{test}`", 0, held, by, today(), fine=False))
    elif report.when == "call":
        printed = (value for name, value in report.user_properties if name == "drill")
        ROWS.extend(Row(*each, by, today()) for each in printed)


def pytest_sessionfinish(session):
    page = session.config.option.table
    # where nothing ran, as with --collect-only, the page and its day stay what they are
    if page is not None and RAN and not hasattr(session.config, "workerinput"):
        fill(page, ROWS, RAN, about())
