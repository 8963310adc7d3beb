"""What the README links to and names is there; tests/test_guides.py runs its Python."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_every_link_of_the_readme_leads_somewhere():
    links = re.findall(r"\]\((?!http)([^)#]+)\)", README)
    assert links
    for link in links:
        assert (ROOT / link).exists(), link


def test_the_two_commands_are_there():
    makefile = (ROOT / "Makefile").read_text()
    for target in ("demo", "test"):
        assert f"make {target}" in README
        assert re.search(rf"^{target}: \$\((CORE|READY)\)", makefile, re.M), "it sets itself up"
