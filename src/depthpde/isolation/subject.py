"""Subject: a model under audit, its batch, and what is known of both before the first question."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor, nn

from depthpde.insertion.calling import quiet
from depthpde.insertion.hooks.container import PREFIX
from depthpde.insertion.moved import moved_weights
from depthpde.isolation.batch import CallBatch, Sequence
from depthpde.isolation.layout import Layout, find_layout
from depthpde.isolation.runner import AuditRun, Runner, single
from depthpde.isolation.trace import ModuleCall, Where

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
    again: AuditRun = field(init=False)
    """The same with other random numbers."""
    _layouts: dict[tuple[str, bool], dict[Where, tuple[Layout, ...]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.plain = single(self.batch)
        self.again = replace(self.plain, seed=1)

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

    def layouts(
        self, sequence: Sequence | None, *, traced: bool
    ) -> dict[Where, tuple[Layout, ...]]:
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

    def silence(self) -> None:
        """Leave dropout out of all runs that are not live, if eval mode draws random numbers."""
        if self.random_call() is not None:
            self.runner.silence()

    def random_call(self) -> ModuleCall | None:
        """Return the first call that gives something else with other random numbers, if any."""
        first, second = self.runner.outputs(self.plain), self.runner.outputs(self.again)
        if all(_same(a, b) for a, b in zip(first, second, strict=False)):
            return None
        root, other = (self.runner.trace(each, precise=False) for each in (self.plain, self.again))
        others = {(each.name, each.number): each.outputs for each in other.walk()}
        for call in root.walk():
            pairs = zip(call.outputs, others.get((call.name, call.number), ()), strict=False)
            if not all(_same(a, b) for a, b in pairs):
                return call
        return root

    def blind_call(self) -> ModuleCall | None:
        """Return the first call that gives no number at some site or row, if the model does."""
        given = self.runner.outputs(self.plain)
        if not any(_is_blind(each) for each in given):
            return None
        root = self.runner.trace(self.plain, precise=False)
        return next((each for each in root.walk() if any(map(_is_blind, each.outputs))), root)

    def check_numbers(self) -> None:
        """Refuse a model whose output holds no number: it cannot be seen to move."""
        call = self.blind_call()
        if call is not None:
            raise ValueError(
                "`model` must give numbers for what reaches them to be told, got NaN at every "
                f"feature of a site from {call.name or '(model)'} ({call.kind}) on; mend its "
                "weights, or check a part of it"
            )

    def _find_layouts(
        self, sequence: Sequence | None, traced: bool
    ) -> dict[Where, tuple[Layout, ...]]:
        batch = self.batch
        base = self._shapes(self.plain, traced)
        fewer = shorter = None
        if batch.rows > 1:
            with suppress(ValueError):
                fewer = self._shapes(single(batch.narrowed(slice(0, batch.rows - 1))), traced)
        length = sequence.length if sequence else 0
        for pairs in (False, True):
            if sequence is None:
                break
            with suppress(ValueError):
                part = batch.cut(sequence, slice(0, length - 1), pairs=pairs)
                shorter = self._shapes(single(part), traced)
                break
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


@contextmanager
def opened(
    model: nn.Module,
    batch: CallBatch,
    *,
    causal: bool | None,
    segments: str | None = None,
    name: str = "batch",
) -> Iterator[AuditSubject]:
    """Put a model under audit, its inserted layers away from the identity; then leave it as it was.

    Args:
        model: Any module.
        batch: What it is called with.
        causal: Whether no site may see its future.
        segments: The argument that numbers packed documents.
        name: What the caller's own argument is called.
    """
    with quiet(model):
        runner = Runner(model, moved_weights(model, inside=PREFIX), name=name)
        try:
            subject = AuditSubject(
                model=model, batch=batch, runner=runner, causal=causal, segments=segments
            )
            subject.silence()
            yield subject
        finally:
            runner.close()


def declared_causal(model: nn.Module) -> bool | None:
    """Return what a model says of itself: by a flag, its config or its name; None if nothing."""
    config = getattr(model, "config", None)
    layers = getattr(model, "attn_layers", None)  # x-transformers: its stack knows
    for owner in (model, config, layers):
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


def _same(a: Tensor, b: Tensor) -> bool:
    return torch.equal(torch.nan_to_num(a), torch.nan_to_num(b))


def _is_blind(tensor: Tensor) -> bool:
    """Tell whether some vector along the last axis holds no number at all."""
    return tensor.ndim > 0 and tensor.numel() > 0 and bool(tensor.isnan().all(dim=-1).any())
