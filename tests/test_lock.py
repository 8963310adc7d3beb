"""The locks hold what constraints.txt pins, with digests, and nothing that names a host."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def tool():
    spec = importlib.util.spec_from_file_location("lock", ROOT / "tools" / "lock.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_locks_hold_what_is_pinned_with_digests():
    lock = tool()
    assert lock.differences() == []
    texts = [(ROOT / "requirements" / f"{name}.lock").read_text() for name in lock.LOCKS]
    assert "numpy" in lock.pinned(texts[0])
    for text in texts:
        assert not {"torch", "triton"} & set(lock.pinned(text))
        assert "://" not in text


def test_another_version_and_a_missing_digest_are_seen(tmp_path, monkeypatch):
    lock = tool()
    monkeypatch.setattr(lock, "FOLDER", tmp_path)
    for name in lock.LOCKS:
        (tmp_path / f"{name}.lock").write_text(
            "numpy==1.0 \\\n    --hash=sha256:00\nrich==15.0.0\n"
        )
    wrong = lock.differences()
    assert any("numpy 1.0, pinned" in each for each in wrong)
    assert any("rich has no digest" in each for each in wrong)


def test_every_licence_is_listed():
    lines = (ROOT / "requirements" / "licences.md").read_text().splitlines()
    listed = {line.split("|")[1].strip() for line in lines if line.startswith("| ")}
    assert {"torch", "numpy", "starlette", "uvicorn"} <= listed


def test_an_audit_that_cannot_be_made_says_so():
    done = subprocess.run(
        [sys.executable, "-S", str(ROOT / "tools" / "lock.py"), "--audit"],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout[:24]) == (0, "weaknesses not looked fo")
