"""Findings as a plain file that scripts read."""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from typing import Any

from depthpde import __version__
from depthpde.theory.claim import Finding, TheoryVerdict


def as_record(findings: Sequence[Finding]) -> dict[str, Any]:
    """Gather findings with what they were computed by; no clock, no host, no path."""
    import torch

    return {
        "verdict": overall(findings).value,
        "versions": {
            "depthpde": __version__,
            "python": platform.python_version(),
            "torch": torch.__version__,
        },
        "findings": [finding.as_json() for finding in findings],
    }


def overall(findings: Sequence[Finding]) -> TheoryVerdict:
    """Judge all findings together: the worst verdict is the verdict."""
    verdicts = {finding.verdict for finding in findings}
    for worst in (TheoryVerdict.FAILS, TheoryVerdict.BLIND):
        if worst in verdicts:
            return worst
    return TheoryVerdict.HOLDS


def to_json(findings: Sequence[Finding]) -> str:
    """Write findings as JSON text: the same findings give the same bytes."""
    return json.dumps(as_record(findings), indent=2, ensure_ascii=False) + "\n"
