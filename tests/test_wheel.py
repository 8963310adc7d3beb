"""The wheel and the sdist build; the wheel works with the core dependencies and nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import depthpde as dp

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def run(*call: object, cwd: Path) -> str:
    done = subprocess.run([str(each) for each in call], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def closure(wanted: list[str]) -> set[str]:
    """Return the distributions that some need, with those that these need."""
    found: set[str] = set()
    queue = list(wanted)
    while queue:
        name = queue.pop()
        if name in found:
            continue
        found.add(name)
        for line in metadata.requires(name) or ():
            need = Requirement(line)
            if need.marker is None or need.marker.evaluate({"extra": ""}):
                queue.append(need.name)
    return found


def link_distribution(name: str, into: Path) -> None:
    """Let an environment see one installed distribution, file by file at its top level."""
    own = metadata.distribution(name)
    tops = {each.parts[0] for each in own.files or () if each.parts[0] not in ("..", "__pycache__")}
    for top in tops:
        place = into / top
        if not place.exists():
            place.symlink_to(Path(str(own.locate_file(top))))


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """A folder with the wheel and the sdist of this working tree."""
    hatchling = pytest.importorskip("hatchling.build", reason="hatchling is not installed")
    assert hatchling
    out = tmp_path_factory.mktemp("dist")
    script = "import sys; from hatchling.build import build_sdist, build_wheel;"
    script += "build_wheel(sys.argv[1]); build_sdist(sys.argv[1])"
    run(sys.executable, "-c", script, out, cwd=ROOT)
    return out


def test_both_carry_the_version_and_what_pages_need(built):
    (wheel,) = built.glob("*.whl")
    assert wheel.name == f"depthpde-{dp.__version__}-py3-none-any.whl"
    names = zipfile.ZipFile(wheel).namelist()
    for wanted in ("depthpde/py.typed", "depthpde/__init__.pyi"):
        assert wanted in names
    assert sum(name.endswith((".css", ".html")) for name in names) >= 5
    source = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert source <= set(names)
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        inside = {Path(each).parts[1] for each in archive.getnames() if len(Path(each).parts) > 1}
    assert {"README.md", "LICENSE", "pyproject.toml", "src", "PKG-INFO"} <= inside


def test_the_citation_names_the_version():
    assert f"version: {dp.__version__}\n" in (ROOT / "CITATION.cff").read_text()


@pytest.mark.drill
def test_the_wheel_works_with_the_core_alone(built, tmp_path):
    """No network: the environment sees the core's distributions by links, and no other."""
    (wheel,) = built.glob("*.whl")
    place = tmp_path / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", place, cwd=tmp_path)
    python = place / "bin" / "python"
    site = Path(
        run(python, "-c", "import site; print(site.getsitepackages()[0])", cwd=tmp_path).strip()
    )
    core = closure([Requirement(each).name for each in PROJECT["dependencies"]])
    for name in core:
        link_distribution(name, site)
    call = [sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index"]
    run(*call, wheel, cwd=tmp_path)
    for other in ("transformers", "starlette", "PIL", "matplotlib", "ray"):
        absent = run(
            python, "-c", f"import importlib.util as u; print(u.find_spec({other!r}))", cwd=tmp_path
        )
        assert absent.strip() == "None"
    command = place / "bin" / "depthpde"
    output = json.loads(run(command, "env", "--json", cwd=tmp_path))
    assert output["versions"]["depthpde"] == dp.__version__
    model = dp.Classifier(
        dp.ModelConfig(dim=16, blocks=2, heads=2, vocabulary=9, length=12, classes=3)
    )
    folder = model.save_pretrained(tmp_path / "model")
    assert "Classifier" in run(command, "doctor", "--checkpoint", folder, cwd=tmp_path)
    transformers = pytest.importorskip("transformers", reason="needs the extra hf")
    config = transformers.BertConfig(
        vocab_size=60, hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=64, max_position_embeddings=40,
    )  # fmt: skip
    transformers.BertModel(config).save_pretrained(tmp_path / "bert")
    call = [command, "doctor", "--hf", "bert", "--json"]
    refused = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True)
    assert refused.returncode == 2
    assert "pip install 'depthpde[hf]'" in refused.stderr
    for name in closure(
        [Requirement(each).name for each in PROJECT["optional-dependencies"]["hf"]]
    ):
        link_distribution(name, site)
    seen = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True)
    assert seen.returncode in (0, 1), seen.stderr
    assert json.loads(seen.stdout)["verdicts"]
