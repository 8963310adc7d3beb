"""What `import depthpde` promises."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import depthpde


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_every_public_name_exists():
    for name in depthpde.__all__:
        assert getattr(depthpde, name) is not None
    assert set(depthpde.__all__) <= set(dir(depthpde))


def test_an_unknown_name_is_refused_and_the_nearest_named():
    with pytest.raises(AttributeError, match="no attribute 'difuse'; did you mean 'diffuse'"):
        _ = depthpde.difuse
    with pytest.raises(AttributeError, match=r"no attribute 'zzzzzz'$"):
        _ = depthpde.zzzzzz


def test_an_unknown_task_is_refused_and_the_nearest_named():
    with pytest.raises(KeyError, match="did you mean 'listops-mini'"):
        _ = depthpde.tasks["listop-mini"]


def test_the_stub_ships_with_the_package():
    assert Path(depthpde.__file__).with_suffix(".pyi").is_file()
    assert Path(depthpde.__file__).with_name("py.typed").is_file()


def test_importing_the_package_imports_no_torch():
    assert run("import sys, depthpde; print('torch' in sys.modules)") == "False"


def test_importing_the_command_imports_no_torch_and_no_numba():
    code = (
        "import sys, depthpde.cli.main as m; m.parser(); print({'torch', 'numba'} & {*sys.modules})"
    )
    assert run(code) == "set()"


def test_using_a_name_changes_nothing_global():
    code = """
import torch
def settings():
    return torch.get_num_threads(), torch.get_default_dtype(), torch.initial_seed()
before = settings()
import depthpde
depthpde.diffuse(torch.zeros(1, 4, 2), 0.1)
print(before == settings())
"""
    assert run(code) == "True"


def test_one_thread_stays_one_thread():
    code = (
        "import torch; torch.set_num_threads(1); import depthpde; "
        "depthpde.diffuse(torch.zeros(1, 4, 2), 0.1); print(torch.get_num_threads())"
    )
    assert run(code) == "1"
