"""What the README shows runs as it stands."""

from __future__ import annotations

import os
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_the_python_of_the_readme_runs(tmp_path, capsys):
    code = "\n".join(re.findall(r"```python\n(.*?)```", README, flags=re.S))
    before = Path.cwd()
    os.chdir(tmp_path)
    try:
        exec(compile(code, "README.md", "exec"), {})
    finally:
        os.chdir(before)
    assert (tmp_path / "diffusion.safetensors").exists()
    assert "after_embedding" in capsys.readouterr().out


def test_every_link_of_the_readme_leads_somewhere():
    links = re.findall(r"\]\((?!http)([^)#]+)\)", README)
    assert links
    for link in links:
        assert (ROOT / link).exists(), link


def test_the_two_commands_are_there():
    makefile = (ROOT / "Makefile").read_text()
    for target in ("demo", "test"):
        assert f"make {target}" in README
        assert f"\n{target}: $(READY)" in makefile
