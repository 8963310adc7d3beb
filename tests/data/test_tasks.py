import subprocess
import sys

import pytest

from depthpde.data.task import Task, TaskKind
from depthpde.data.tasks import TASKS

FIVE = ("listops", "text", "retrieval", "image", "pathfinder")


@pytest.mark.parametrize("task", TASKS.values(), ids=list(TASKS))
def test_every_task_is_consistent(task: Task) -> None:
    assert TASKS[task.name] is task
    assert list(task.splits) == ["train", "validation", "test"]
    assert (task.grid is not None) == (task.kind is TaskKind.IMAGE)
    assert task.classes <= 256 or task.kind is TaskKind.LANGUAGE
    assert task.vocabulary > task.shift
    assert task.length <= 256 or not task.mini


def test_the_whole_arena_is_there_and_has_a_mini_of_everything() -> None:
    assert {*FIVE, "pathx", "mnist", "fashion-mnist", "newsgroups"} <= TASKS.keys()
    for name in (*FIVE, "mnist", "newsgroups"):
        assert TASKS[f"{name}-mini"].mini
        assert not TASKS[name].mini


def test_the_published_sizes_of_the_arena() -> None:
    assert [tuple(TASKS[name].splits.values()) for name in FIVE] == [
        (96_000, 2_000, 2_000),
        (22_500, 2_500, 25_000),
        (147_086, 18_090, 17_437),
        (45_000, 5_000, 10_000),
        (160_000, 20_000, 20_000),
    ]
    assert [TASKS[name].length for name in FIVE] == [2000, 4000, 4000, 1024, 1024]


def test_refuses_a_task_that_contradicts_itself() -> None:
    given = {
        "name": "x", "title": "x", "family": "x", "kind": TaskKind.IMAGE, "vocabulary": 2,
        "classes": 2, "recipe": TASKS["mnist"].recipe, "splits": {"train": 1},
    }  # fmt: skip
    with pytest.raises(ValueError, match=r"`grid`.*as `length`, got \(2, 3"):
        Task(**given, length=5, grid=(2, 3))
    with pytest.raises(ValueError, match=r"`length`.*1.*got 0"):
        Task(**given, length=0)
    with pytest.raises(ValueError, match=r"`splits`.*got 'va"):
        Task(**given | {"splits": {"val": 1}}, length=5)


def test_the_table_is_read_without_torch_or_numba() -> None:
    code = (
        "import sys, depthpde.data.catalog, depthpde.cli.data\n"
        "print([name for name in ('torch', 'numba', 'scipy', 'PIL') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
