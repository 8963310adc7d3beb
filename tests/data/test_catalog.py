import dataclasses
from pathlib import Path

import pytest

from depthpde.data import catalog
from depthpde.data.catalog import (
    condition,
    default_data,
    default_out,
    folder_of,
    load,
    prepare,
    prepared_tasks,
    resolved,
    verify,
)
from depthpde.data.reader import read_manifest
from depthpde.data.tasks import TASKS


@pytest.fixture
def small(monkeypatch) -> None:
    sizes = {"train": 60, "validation": 20, "test": 20}
    for name in ("listops-mini", "pathfinder-mini", "listops"):
        monkeypatch.setitem(TASKS, name, dataclasses.replace(TASKS[name], splits=sizes))


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", ["listops-mini", "pathfinder-mini"])
def test_the_same_request_gives_the_same_bytes(tmp_path: Path, name: str) -> None:
    one = prepare(name, out=tmp_path / "one", workers=1)
    two = prepare(TASKS[name], out=tmp_path / "two", workers=2)
    assert {each.name: each.read_bytes() for each in one.iterdir()} == {
        each.name: each.read_bytes() for each in two.iterdir()
    }
    other = prepare(name, out=tmp_path / "three", seed=1)
    assert read_manifest(other)["columns"] != read_manifest(one)["columns"]


@pytest.mark.usefixtures("small")
def test_the_manifest_tells_where_the_arrays_come_from(tmp_path: Path) -> None:
    manifest = read_manifest(prepare("listops-mini", out=tmp_path, seed=3))
    assert manifest["seed"] == 3
    assert manifest["generator"] == TASKS["listops-mini"].generator
    assert manifest["protocol"] == "strict"
    assert manifest["sources"] == []
    assert set(manifest["facts"]["baselines"]) == {
        "majority", "root_operator", "root_digits", "root_applied"
    }  # fmt: skip


@pytest.mark.usefixtures("small")
def test_protocols_lie_side_by_side(tmp_path: Path) -> None:
    prepare("listops", out=tmp_path)
    prepare("listops", out=tmp_path, protocol="nystrom-2021")
    assert list(prepared_tasks(tmp_path)) == ["listops", "listops@nystrom-2021"]
    assert load("listops", "test", out=tmp_path).padding is None
    assert load("listops", "test", out=tmp_path, protocol="nystrom-2021").padding == 2048
    assert resolved(TASKS["listops"], "lra-2020")[0].vocabulary == 17


def test_what_is_not_prepared_says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"not prepared .* run: depthpde data prepare text"):
        load("text", "train", out=tmp_path)
    with pytest.raises(FileNotFoundError, match=r"no prepared task; run: .* --all-mini --out \S+$"):
        verify(tmp_path)
    assert prepared_tasks(tmp_path / "nowhere") == {}


def test_advice_names_the_protocol(tmp_path: Path) -> None:
    with pytest.raises(
        FileNotFoundError, match=r"data prepare text --protocol lra-2020 --out \S+$"
    ):
        load("text", "train", out=tmp_path, protocol="lra-2020")


@pytest.mark.usefixtures("small")
def test_arrays_of_an_older_recipe_are_refused(tmp_path: Path, monkeypatch) -> None:
    prepare("listops-mini", out=tmp_path)
    newer = dataclasses.replace(TASKS["listops-mini"], generator=99)
    monkeypatch.setitem(TASKS, "listops-mini", newer)
    with pytest.raises(ValueError, match=r"must.*version 99 of its recipe, got 2; run: d"):
        load("listops-mini", "train", out=tmp_path)
    (why,) = verify(tmp_path)["listops-mini"]
    assert "comes from version" in why
    assert condition(tmp_path / "listops-mini") == "outdated"


@pytest.mark.usefixtures("small")
def test_a_folder_is_prepared_only_if_its_files_have_their_sizes(tmp_path: Path) -> None:
    folder = prepare("listops-mini", out=tmp_path)
    assert condition(folder) == "prepared"
    (folder / "train.tokens.u8").write_bytes(b"")
    assert condition(folder) == "damaged"
    (folder / "manifest.json").write_text("{")
    assert condition(folder) == "damaged"


@pytest.mark.usefixtures("small")
def test_verifying_finds_what_changed(tmp_path: Path) -> None:
    folder = prepare("listops-mini", out=tmp_path)
    assert verify(tmp_path) == {"listops-mini": []}
    path = folder / "test.labels.u8"
    path.write_bytes(bytes(len(path.read_bytes())))
    assert "has changed" in verify(tmp_path, ["listops-mini"])["listops-mini"][0]
    assert "not prepared" in verify(tmp_path, ["text"])["text"][0]


def test_verifying_refuses_a_task_or_protocol_that_nobody_knows(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"`task` must be one of .* did you mean 'listops'\?"):
        verify(tmp_path, ["listop"])
    with pytest.raises(ValueError, match=r"did you mean 'lra-2020'\?"):
        verify(tmp_path, ["text@lra-2019"])
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "manifest.json").write_text("{")
    assert "is not a manifest" in verify(tmp_path, ["mine"])["mine"][0]


def test_unknown_names_are_refused_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"`task` must be one of .* did you mean 'listops-mini'"):
        prepare("listopsmini", out=tmp_path)
    with pytest.raises(ValueError, match=r"`workers`.*1.*got 0"):
        prepare("listops-mini", out=tmp_path, workers=0)


def test_folders_come_from_the_environment(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_out() == tmp_path / "depthpde" / "data"
    monkeypatch.setenv(catalog.ENVIRONMENT, str(tmp_path / "official"))
    assert default_data() == tmp_path / "official"
    monkeypatch.delenv(catalog.ENVIRONMENT)
    assert default_data() is None
    assert folder_of("x", tmp_path, "lra-2020") == tmp_path / "x@lra-2020"
