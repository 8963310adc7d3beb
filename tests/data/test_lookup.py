"""A task of one's own is found by its function or its folder, in this process and in others."""

import numpy as np
import pytest

import depthpde as dp
from depthpde.data.lookup import find_anywhere, find_task, is_source

MODULE = """
import numpy as np, depthpde as dp
def make():
    return dp.Task.from_arrays("steps", np.arange(80.0).reshape(20, 4), [0, 1] * 10)
def wrong():
    return 3
def listops():
    return dp.tasks["listops-mini"]
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / "my_tasks_module.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_function_in_the_working_folder_is_imported(here):
    assert is_source("my_tasks_module:make")
    assert find_task("steps", "my_tasks_module:make").length == 4


def test_a_folder_of_arrays_is_a_task_and_follows_its_files(here):
    folder = here / "waves"
    folder.mkdir()
    assert not is_source(str(folder))
    x, y = np.arange(80.0).reshape(20, 4), [0, 1] * 10
    np.save(folder / "x.npy", x)
    with pytest.raises(FileNotFoundError, match=r"y\.npy"):
        find_task("", str(folder))
    np.save(folder / "y.npy", y)
    first = find_task("waves", str(folder))
    np.save(folder / "x_test.npy", x[:6])
    np.save(folder / "y_test.npy", y[:6])
    second = find_task("waves", str(folder))
    assert (first.splits["test"], second.splits["test"]) == (4, 6)


def test_a_prepared_folder_is_a_task_and_can_be_copied(here):
    task = find_task("", "my_tasks_module:make")
    place = dp.prepare(task, out=here / "first")
    again = find_task("steps", str(place))
    assert (again.generator, again.channels) == (task.generator, task.channels)
    dp.prepare(again, out=here / "second")
    one, two = (dp.load(again, "test", out=here / each) for each in ("first", "second"))
    assert one.tokens.tolist() == two.tokens.tolist()
    assert one.labels.tolist() == two.labels.tolist()


@pytest.mark.parametrize(
    ("name", "source", "error", "match"),
    [
        ("listopz-mini", None, ValueError, "listops-mini"),
        ("", "no_such_module:make", ValueError, "no_such_module"),
        ("", "my_tasks_module:nothing", ValueError, "nothing"),
        ("", "my_tasks_module:wrong", ValueError, "int"),
        ("", "my_tasks_module:listops", ValueError, "rename"),
        ("other", "my_tasks_module:make", ValueError, "'steps'"),
        ("", "nowhere/at/all", FileNotFoundError, "x.npy"),
    ],
)
def test_what_is_no_task_is_named(here, name, source, error, match):
    with pytest.raises(error, match=match):
        find_task(name, source)


def test_an_array_of_objects_is_refused(here):
    (here / "odd").mkdir()
    (here / "odd" / "x.npy").write_bytes(b"no array")
    with pytest.raises(ValueError, match=r"x\.npy"):
        find_task("", str(here / "odd"))


def test_a_folder_is_found_from_another_folder(here):
    assert find_anywhere("my_tasks_module:make") == "my_tasks_module:make"
    assert find_anywhere("data/waves") == str(here / "data" / "waves")
