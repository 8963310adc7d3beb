import ctypes
import os
import subprocess
import sys

import pytest

from depthpde.training.memory import keep_freed_memory

FAULTS = """
import resource, sys
import torch
from depthpde.training.memory import keep_freed_memory

def update():
    for _ in range(4):
        [torch.ones(2**19) for _ in range(24)]

if sys.argv[1] == "keep":
    assert keep_freed_memory()
update()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
update()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(how):
    # Without this glibc learns from use which blocks to keep, sooner or later.
    never_learn = os.environ | {"MALLOC_MMAP_THRESHOLD_": "1000000"}
    command = [sys.executable, "-c", FAULTS, how]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=never_learn)
    return int(done.stdout)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks glibc")
def test_memory_that_is_kept_costs_no_page_faults():
    pages = 24 * 2**21 // 4096
    assert faults("keep") < pages / 20
    assert faults("leave") > pages


def test_other_systems_are_left_alone(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert keep_freed_memory() is False


def test_another_c_library_is_left_alone(monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    assert keep_freed_memory() is False
