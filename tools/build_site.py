"""Build the documentation site: docs/ and the docstrings → out/site/html, strict.

    docs/*.md, the API, the gallery  →  out/site/pages  →  zensical  →  out/site/html

docs/ is written for readers of the repository: its pages link to files outside docs/ and write
formulas in LaTeX. Here linked files are laid beside the pages and formulas become MathML, so that
the site needs no network and no script of another host. A dead link, an anchor that is not there,
a name of the API that no page holds or an unreadable docstring ends the build.
"""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = Path("out/site/pages")
HTML = Path("out/site/html")
STUB = Path("src/depthpde/__init__.pyi")

API: dict[str, tuple[str, tuple[str, ...]]] = {
    "layers": ("Layers", ("layers",)),
    "operators": ("Operators", ("operators",)),
    "models": ("Models", ("models", "hub")),
    "insertion": ("Insertion", ("insertion",)),
    "doctor": ("Doctor and measures", ("doctor", "measures")),
    "audit": ("Audit", ("isolation", "testing")),
    "simulator": ("Simulator and solvers", ("simulator", "solvers")),
    "data": ("Data", ("data",)),
    "comparison": ("Comparison", ("comparison",)),
    "training": ("Training and runs", ("training", "runs", "seeds")),
    "sweeps": ("Sweeps", ("sweeps",)),
    "results": ("Results and verdicts", ("records", "report")),
}
"""Page → its title, and the folders whose public names it holds."""

LINK = re.compile(r"(\]\()(\.\./[^)#\s]+)(#[^)\s]*)?\)")
CODE = re.compile(r"(```.*?```|`[^`\n]+`)", re.DOTALL)
DISPLAY = re.compile(r"\$\$(.+?)\$\$", re.DOTALL)
INDEX = re.compile(r"(?<=[\w\]])\[(?=')")
"""An index in plain text, which Markdown would read as a link."""
INLINE = re.compile(r"(?<![\w$\\])\$(?=\S)([^$\n]+?)(?<=\S)\$(?![\w$])")


def public_names(stub: str) -> dict[str, str]:
    """Return public name → the folder of the package it comes from, in the order of the stub."""
    homes: dict[str, str] = {}
    for node in ast.parse(stub).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            folders = node.module.split(".")[1:]
            homes |= {each.name: folders[0] if folders else each.name for each in node.names}
        elif isinstance(node, ast.Assign):  # tasks = TASKS
            homes[ast.unparse(node.targets[0])] = homes.pop(ast.unparse(node.value))
    return homes


def api_pages(stub: str) -> dict[str, str]:
    """Return file name → text of the pages of the API reference."""
    homes = public_names(stub)
    lost = set(homes.values()) - {each for _, folders in API.values() for each in folders}
    if lost:
        raise SystemExit(
            f"every public name must have a page of the API, got names from {sorted(lost)} that "
            "have none; add the folder to `API` in tools/build_site.py"
        )
    pages, index = {}, ["# API reference\n", "`import depthpde as dp` is the whole public API.\n"]
    for page, (title, folders) in API.items():
        names = [name for name, home in homes.items() if home in folders]
        if not names:
            continue
        blocks = "\n\n".join(f"::: depthpde.{name}" for name in names)
        pages[f"{page}.md"] = f"# {title}\n\n{blocks}\n"
        links = " · ".join(f"[`{name}`]({page}.md#depthpde.{name})" for name in names)
        index.append(f"**[{title}]({page}.md)**: {links}\n")
    return pages | {"index.md": "\n".join(index)}


def to_mathml(text: str) -> str:
    """Return a page with MathML for the LaTeX outside its code, and no links made of indices."""
    from latex2mathml.converter import convert

    def block(found: re.Match[str]) -> str:
        return f"\n\n<div class='formula'>{convert(found[1].strip(), display='block')}</div>\n\n"

    def inline(found: re.Match[str]) -> str:
        return f"<span>{convert(found[1])}</span>"  # a line that begins with <math> is a block

    parts = CODE.split(text)
    for at in range(0, len(parts), 2):  # the odd ones are code
        plain = INDEX.sub(r"\\[", parts[at])
        parts[at] = INLINE.sub(inline, DISPLAY.sub(block, plain))
    return "".join(parts)


def bring_linked(text: str, page: str) -> str:
    """Lay the files of the repository that a page links to beside the pages, and link there."""

    def brought(found: re.Match[str]) -> str:
        target, anchor = found[2].removeprefix("../").rstrip("/"), found[3] or ""
        if not (ROOT / target).exists():
            raise SystemExit(f"links must lead somewhere, got {found[2]} in docs/{page}; mend it")
        if target == "results":  # a folder of thousands of files: its report stands for it
            target = "results/report/report.html"
        if (ROOT / target).is_dir():
            raise SystemExit(f"links must lead to files, got {found[2]} in docs/{page}; name one")
        place = PAGES / "repository" / target
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / target, place)
        if place.suffix == ".md":  # a page of the site too: its links to docs/ lead to pages
            place.write_text(place.read_text(encoding="utf-8").replace("](docs/", "](../"))
        return f"{found[1]}repository/{target}{anchor})"

    return LINK.sub(brought, text)


def lay_out() -> None:
    """Write everything that zensical reads to out/site/pages."""
    shutil.rmtree(PAGES, ignore_errors=True)
    shutil.copytree(ROOT / "docs", PAGES)
    for path in sorted(PAGES.glob("*.md")):
        text = bring_linked(path.read_text(encoding="utf-8"), path.name)
        path.write_text(to_mathml(text), encoding="utf-8")
    (PAGES / "api").mkdir()
    for name, text in api_pages((ROOT / STUB).read_text(encoding="utf-8")).items():
        (PAGES / "api" / name).write_text(text, encoding="utf-8")


def build() -> int:
    """Run zensical; its log fails the build too where only a line tells of an error."""
    call = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    done = subprocess.run(call, cwd=ROOT, text=True, capture_output=True)
    told = done.stdout + done.stderr
    print(told, end="")
    return int(done.returncode != 0 or bool(re.search(r"^(ERROR|WARNING)\b", told, re.M)))


def main() -> int:
    """Lay out, build, say where the site is."""
    lay_out()
    code = build()
    if not code:
        # a browser lets no page of a file start the worker that searches
        print(f"{HTML}/index.html; with search: python -m http.server --directory {HTML}")
    return code


if __name__ == "__main__":
    sys.exit(main())
