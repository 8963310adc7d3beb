"""Trial: two runs that must agree on a part of what they give.

size = max |b − a| / max |a|       over the rows and sites that nothing may reach
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from depthpde.isolation.batch import Sequence as SiteSequence
from depthpde.isolation.layout import Layout
from depthpde.isolation.runner import AuditRun
from depthpde.isolation.trace import ModuleCall, Where

Layouts = Mapping[Where, Sequence[Layout]]
"""The axes of every tensor of a run."""

ALL = slice(None)
TOLERANCE = 1e-9
"""In float64, relative: above it something else than rounding is at work."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Trial:
    """What is changed, and where nothing may move."""

    what: str
    """The change, as the subject of a sentence: "the content of left padding"."""
    reference: AuditRun
    other: AuditRun
    sequence: SiteSequence | None = None
    """Whose sites are meant; None for the first of the batch."""
    rows: tuple[slice, slice] = (ALL, ALL)
    sites: tuple[slice, slice] = (ALL, ALL)
    compares: Literal["sites", "rows", "all"] = "sites"
    """Tensors with an axis of sites, those with one of rows, or every tensor."""


def size_of_move(trial: Trial, layouts: Sequence[Layout], a: Tensor, b: Tensor) -> float | None:
    """Return how far a tensor moves where it must not; None if that cannot be compared.

    Args:
        trial: Says where.
        layouts: The axes of the tensor; of several that may be meant, the least move counts.
        a: In the reference run.
        b: In the other run.
    """
    pairs = (kept_parts(trial, each, a, b) for each in layouts)
    sizes = [distance(*pair, a) for pair in pairs if pair is not None]
    return min((each for each in sizes if each is not None), default=None)


def kept_parts(trial: Trial, layout: Layout, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor] | None:
    """Return what must agree of a tensor in two runs, as [rows, sites, …]; None if nothing.

    Args:
        trial: Says where.
        layout: The axes of the tensor.
        a: In the reference run.
        b: In the other run.
    """
    if trial.compares == "sites" and layout.sites is None:
        return None
    if trial.compares == "rows" and layout.rows is None:
        return None
    parts = []
    for tensor, run, rows, sites in (
        (a, trial.reference, trial.rows[0], trial.sites[0]),
        (b, trial.other, trial.rows[1], trial.sites[1]),
    ):
        part = layout.arrange(tensor, run.rows, run.length or 1)
        if part is None:
            return None
        part = part if layout.rows is None else part[rows]
        parts.append(part if layout.sites is None else part[:, sites])
    if parts[0].shape != parts[1].shape or parts[0].numel() == 0:
        return None
    return parts[0].double(), parts[1].double()


def distance(old: Tensor, new: Tensor, whole: Tensor) -> float | None:
    """Relate the largest change to the largest number; what is no number in both agrees.

    Args:
        old: In the reference run.
        new: In the other run.
        whole: The tensor of which the first is a part.
    """
    if bool(old.isnan().all()):
        return None
    same = (old == new) | (old.isnan() & new.isnan())
    gap = torch.nan_to_num((new - old).abs().masked_fill(same, 0.0), nan=torch.inf)
    finite = torch.where(whole.isfinite(), whole, 0.0).double()
    finite = finite.masked_fill(finite.abs() > 1e30, 0.0)  # the −∞ of masks is no scale
    return float(gap.max() / finite.abs().max().clamp(min=1e-12))


def find_source(
    trial: Trial, layouts: Layouts, a: ModuleCall, b: ModuleCall
) -> tuple[ModuleCall, ModuleCall]:
    """Find the innermost call, in both runs, whose inputs agree and whose outputs do not.

    Of several calls that move, one is passed over if a later part of the same module does not: a
    table of positions may move and still change nothing.

    Args:
        trial: Says where to look.
        layouts: The axes of every tensor of a trace.
        a: The reference run's call, whose output moves.
        b: The same call in the other run.
    """
    others = {(each.name, each.number): each for each in b.children}
    pairs = [
        (each, others[each.name, each.number])
        for each in a.children
        if (each.name, each.number) in others
    ]
    moved = [_moves(trial, layouts, "out", x, y) for x, y in pairs]
    first = [k for k, each in enumerate(moved) if each]
    if not first:
        return a, b
    settled = [
        k for k, (x, _) in enumerate(pairs) if moved[k] is False and x.children
    ]  # composite parts that took in all before them and stayed
    late = [k for k in first if not any(k < each for each in settled)]
    x, y = pairs[(late or first)[0]]
    if _moves(trial, layouts, "in", x, y):
        return a, b  # it came in before: by the module's own code
    return find_source(trial, layouts, x, y)


def moves(trial: Trial, layouts: Layouts, a: ModuleCall, b: ModuleCall) -> float | None:
    """Return how far the outputs of a call move; None if none can be compared."""
    sizes = _sizes(trial, layouts, "out", a, b)
    return max(sizes) if sizes else None


def _moves(trial: Trial, layouts: Layouts, side: str, a: ModuleCall, b: ModuleCall) -> bool | None:
    sizes = _sizes(trial, layouts, side, a, b)
    return max(sizes) > TOLERANCE if sizes else None


def _sizes(trial: Trial, layouts: Layouts, side: str, a: ModuleCall, b: ModuleCall) -> list[float]:
    old, new = (a.inputs, b.inputs) if side == "in" else (a.outputs, b.outputs)
    found = []
    for k, (x, y) in enumerate(zip(old, new, strict=False)):
        size = size_of_move(trial, layouts.get((a.name, a.number, side, k), ()), x, y)
        if size is not None:
            found.append(size)
    return found
