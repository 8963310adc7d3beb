"""One call trains, pairs by seed and judges; what cannot be compared is named."""

import json
import os
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch

import depthpde as dp
from comparison.conftest import SMALL
from recipes import ROOT

MODULE = """
import numpy as np, depthpde as dp
def make():
    return dp.Task.from_arrays("steps", np.random.default_rng(0).normal(size=(40, 6)), [0, 1] * 20)
"""


def test_every_variant_has_every_seed_and_a_role(compared):
    assert [each.label for each in compared.entrants] == ["plain", "diffusion", "convolution"]
    assert [str(each.role) for each in compared.entrants] == ["baseline", "ours", "control"]
    assert all(set(each.scores) == {0, 1} for each in compared.entrants)
    assert list(compared.entrants[1].ratios) == ["after embedding", "block 1, between blocks"]
    assert all(len(each.curve.updates) == 4 for each in compared.entrants)


def test_what_is_recorded_is_not_computed_again(compared, task):
    before = {each.name for each in (compared.results / "runs").iterdir()}
    here = dp.InProcess(dp.Folders(compared.results, prepared=compared.results / "tasks"))
    again = dp.compare(task, {"plain": {}, "wide": {"dim": 16}}, seeds=1, executor=here, **SMALL)
    assert again.baseline.scores[0] == compared.baseline.scores[0]
    new = {each.name for each in (compared.results / "runs").iterdir()} - before
    assert len(new) == 1, "one run: the wide one"


def test_a_workers_process_imports_the_task_itself(tmp_path, monkeypatch):
    (tmp_path / "steps_module.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    grid = {
        "tasks": ["steps_module:make"],
        "seeds": 1,
        **SMALL,
        "variants": {"plain": {}, "diffusion": {"model": {"positions": ["after_embedding"]}}},
    }
    grid["training"] = {"updates": 4, "warmup": 0}
    (tmp_path / "grid.json").write_text(json.dumps(grid))
    plan = dp.read_plan(tmp_path / "grid.json")
    results = tmp_path / "out"
    pool = dp.Pool(dp.Folders(results, prepared=tmp_path / "prepared"), workers=1)
    outcome = dp.sweep(plan.runs, pool, results)
    assert (outcome.recorded, outcome.failed) == (2, {})


@pytest.mark.parametrize(
    ("variants", "match"),
    [
        ({"plain": {}, "mine": lambda: None}, "'mine'"),
        ({"plain": {}, "other": 3}, "3 for 'other'"),
        ({"plain": {}, "other": {"dimm": 3}}, "did you mean 'dim'"),
        ({"one": lambda: None, "two": lambda: None}, "NoneType from 'one'"),
        ({"one": torch.nn.Linear(2, 2), "two": {}}, r"Linear for 'one'.*lambda"),
    ],
)
def test_what_cannot_be_compared_is_named(task, tmp_path, variants, match):
    with pytest.raises(ValueError, match=match):
        dp.compare(task, variants, seeds=1, out=tmp_path, **SMALL)


def test_an_unknown_task_names_the_nearest():
    with pytest.raises(ValueError, match="listops-mini"):
        dp.compare("listops-mni", {"plain": {}})


def test_endpoints_are_a_closed_set(task):
    with pytest.raises(ValueError, match="accuracy"):
        dp.compare(task, {"plain": {}}, endpoint="acuracy")


def test_a_folder_of_arrays_is_compared_by_its_name(tmp_path):
    folder = tmp_path / "waves"
    folder.mkdir()
    np.save(folder / "x.npy", np.random.default_rng(0).normal(size=(40, 6)))
    np.save(folder / "y.npy", [0, 1] * 20)
    here = dp.InProcess(dp.Folders(tmp_path / "out", prepared=tmp_path / "prepared"))
    found = dp.compare(str(folder), {"a": {}, "b": {"dim": 16}}, seeds=1, executor=here, **SMALL)
    assert found.task == "waves"


def test_a_set_of_the_ucr_archive_is_compared(tmp_path):
    """Real series with their own test split; skipped where nobody brought the archive."""
    data = Path(os.environ.get("DEPTHPDE_DATA") or ROOT / ".." / "shared" / "data").resolve()
    found = sorted((data / "ucr").glob("*ECG5000*.tar.xz"))
    if not found:
        pytest.skip("no UCR archive: set DEPTHPDE_DATA to the folder that holds ucr/")
    rows = {}
    with tarfile.open(found[0]) as archive:
        for member in archive:
            if member.name.endswith(("ECG5000_TRAIN.tsv", "ECG5000_TEST.tsv")):
                rows[member.name.removesuffix(".tsv").rpartition("_")[2]] = np.loadtxt(
                    archive.extractfile(member)
                )
    train, test = rows["TRAIN"], rows["TEST"][:500]
    task = dp.Task.from_arrays("ecg5000", train[:, 1:], train[:, 0].astype(int), test=(
        test[:, 1:], test[:, 0].astype(int),
    ))  # fmt: skip
    here = dp.InProcess(dp.Folders(tmp_path, prepared=tmp_path / "tasks"))
    result = dp.compare(
        task, {"plain": {}, "diffusion": {"positions": ("after_embedding",)}}, seeds=1,
        model={"dim": 16, "blocks": 1, "heads": 2}, training={"updates": 60}, executor=here,
    )  # fmt: skip
    for each in result.entrants:
        assert each.scores[0] > 80.0, "the largest class has 58 %"
