"""The doctor and the audit on a real pretrained model, in a few seconds."""

from __future__ import annotations

from dataclasses import dataclass

from depthpde.demo.pretrained import HOW, find_files, load_minilm, tokenize
from depthpde.doctor.diagnosis import Diagnosis, diagnose
from depthpde.isolation.audit import audit
from depthpde.isolation.report import AuditReport
from depthpde.threads import threads

SENTENCES = [
    "Depth is time.",
    "A field diffuses along the sequence of its tokens, and stops at the wall of padding.",
    "The quick brown fox jumps over the lazy dog near the bank of the river.",
    "Attention mixes tokens by content; the feed-forward part acts on each of them alone.",
    "It rained all night, and in the morning the garden smelled of wet earth.",
    "Stock prices fell sharply after the central bank raised its rates again.",
    "She opened the letter, read it twice, and put it back into the drawer.",
    "Water boils at a lower temperature in the mountains than at the sea.",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class PretrainedLook:
    """What was seen of the pretrained model."""

    diagnosis: Diagnosis | None = None
    audit: AuditReport | None = None
    missing: str = ""
    """Why there is nothing, and what to do; empty where there is something."""


def look() -> PretrainedLook:
    """Diagnose and audit MiniLM; where its package is not installed, say how to get it."""
    folder = find_files()
    if folder is None:
        return PretrainedLook(missing=f"MiniLM is not installed; to see a real model: {HOW}")
    model = load_minilm(folder)
    batch = tokenize(SENTENCES, folder)
    with threads(1):  # many small products: more threads wait for each other
        return PretrainedLook(diagnosis=diagnose(model, batch), audit=audit(model, batch))
