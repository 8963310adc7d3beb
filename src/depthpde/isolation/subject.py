"""Subject: a model under audit, its batch, and what is known of both before the first question."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from depthpde.isolation.batch import CallBatch, Sequence
from depthpde.isolation.layout import Layout, find_layout
from depthpde.isolation.runner import AuditRun, Runner, single
from depthpde.isolation.trace import Where

DECODER_NAMES = ("ForCausalLM", "LMHeadModel", "DoubleHeads")
"""In the name of a class that predicts the next token."""


@dataclass(kw_only=True)
class AuditSubject:
    """What the questions read."""

    model: nn.Module
    batch: CallBatch
    runner: Runner
    causal: bool | None
    """Whether no site may see its future; None if nobody says so."""
    segments: str | None
    """The argument that numbers packed documents."""
    plain: AuditRun = field(init=False)
    """The batch as it came."""
    _layouts: dict[tuple[str, bool], dict[Where, Layout | None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.plain = single(self.batch)

    @property
    def main(self) -> Sequence | None:
        """The sequence whose sites the model's output has: the decoder's where there is one."""
        return self.batch.sequences[-1] if self.batch.sequences else None

    @property
    def incomplete(self) -> str:
        """Why a decoder cannot be asked: it makes its input from the encoder's by itself."""
        config = getattr(self.model, "config", None)
        decodes = getattr(config, "is_encoder_decoder", False) is True
        if not decodes or "decoder_input_ids" not in self.batch.accepts:
            return ""
        if self.main is not None and self.main.decoder:
            return ""
        return "the batch has no decoder_input_ids"

    def layouts(self, sequence: Sequence | None, *, traced: bool) -> dict[Where, Layout | None]:
        """Return the axes of the model's outputs, or of every tensor of a trace.

        Args:
            sequence: Whose sites are meant; None for the first of the batch.
            traced: Whether the tensors of every module are wanted.
        """
        if sequence is None and self.batch.sequences:
            sequence = self.batch.sequences[0]
        key = str(sequence.key) if sequence else "", traced
        if key not in self._layouts:
            self._layouts[key] = self._find_layouts(sequence, traced)
        return self._layouts[key]

    def _find_layouts(self, sequence: Sequence | None, traced: bool) -> dict[Where, Layout | None]:
        batch = self.batch
        base = self._shapes(self.plain, traced)
        fewer = shorter = None
        with suppress(ValueError):
            fewer = self._shapes(single(batch.narrowed(slice(0, batch.rows - 1))), traced)
        length = sequence.length if sequence else 0
        if sequence is not None:
            with suppress(ValueError):
                shorter = self._shapes(single(batch.cut(sequence, slice(0, length - 1))), traced)
        return {
            key: find_layout(
                shape,
                batch.rows,
                length,
                None if fewer is None else fewer.get(key, ()),
                None if shorter is None else shorter.get(key, ()),
            )
            for key, shape in base.items()
        }

    def _shapes(self, run: AuditRun, traced: bool) -> dict[Where, tuple[int, ...]]:
        if traced:
            tensors = dict(self.runner.trace(run).tensors())
        else:
            given = self.runner.outputs(run)
            tensors = {("", 0, "out", k): each for k, each in enumerate(given)}
        return {key: tuple(each.shape) for key, each in tensors.items()}


def declared_causal(model: nn.Module) -> bool | None:
    """Return what a model says of itself: by a flag, its config or its name; None if nothing."""
    config = getattr(model, "config", None)
    for owner in (model, config):
        for name in ("causal", "is_causal", "is_decoder"):
            if getattr(owner, name, None) is True:
                return True
    if getattr(config, "is_encoder_decoder", False) is True:
        return True
    if any(part in type(model).__name__ for part in DECODER_NAMES):
        return True
    return None


def where_rows(batch: CallBatch, rows: slice) -> Tensor:
    """Return a mask [rows, 1] that is True in some rows."""
    mask = torch.zeros(batch.rows, 1, dtype=torch.bool)
    mask[rows] = True
    return mask


def where_sites(batch: CallBatch, length: int, sites: slice, rows: slice = slice(None)) -> Tensor:
    """Return a mask [rows, length] that is True at some sites of some rows."""
    mask = torch.zeros(batch.rows, length, dtype=torch.bool)
    mask[rows, sites] = True
    return mask
