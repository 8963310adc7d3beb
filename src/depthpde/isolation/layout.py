"""Which axes of a tensor are the rows of the batch and the sites of a sequence?

    one row less:    s → s (B − 1) / B          one site less:    s → s (n − 1) / n

Sizes alone do not tell: width, heads, rows and sites may be equal. So the model runs once on one
row less and once on one site less, and the axis that shrinks in proportion is the one meant. An
axis [rows · sites] shrinks both times and is taken apart, rows first.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, slots=True)
class Layout:
    """Where rows and sites are in one tensor; None where it has none."""

    rows: int | None
    sites: int | None

    def arrange(self, tensor: Tensor, rows: int, length: int) -> Tensor | None:
        """Return a tensor as [rows or 1, sites or 1, …]; None if its sizes do not fit.

        Args:
            tensor: Of a run over `rows` × `length`, which may differ from the first run's.
            rows: Rows of that run.
            length: Sites of that run.
        """
        sizes: dict[int, list[int]] = {}
        if self.rows is not None:
            sizes[self.rows] = [rows]
        if self.sites is not None:
            sizes.setdefault(self.sites, []).append(length)
        shape: list[int] = []
        first: dict[int, int] = {}
        for axis, size in enumerate(tensor.shape):
            factors = sizes.get(axis, [])
            whole = 1
            for factor in factors:
                whole *= factor
            if whole == 0 or size % whole:
                return None
            first[axis] = len(shape)
            shape += [*factors, size // whole]
        tensor = tensor.reshape(shape)
        order = []
        if self.rows is not None:
            order.append(first[self.rows])
        if self.sites is not None:
            order.append(first[self.sites] + (self.sites == self.rows))
        rest = [axis for axis in range(tensor.ndim) if axis not in order]
        tensor = tensor.permute([*order, *rest])  # a list: one number has no axis
        if self.rows is None:
            tensor = tensor.unsqueeze(0)
        return tensor if self.sites is not None else tensor.unsqueeze(1)


def find_layout(
    shape: tuple[int, ...],
    rows: int,
    length: int,
    fewer: tuple[int, ...] | None,
    shorter: tuple[int, ...] | None,
) -> tuple[Layout, ...]:
    """Find rows and sites of a tensor; nothing if a shape changed in a way that is neither.

    Where one site less could not be run, every axis of the right size may be the one meant: a
    reader must be content with what holds along each of them.

    Args:
        shape: In a run over `rows` × `length`.
        rows: Rows of that run.
        length: Sites of that run; 0 if the input has none.
        fewer: The shape with one row less; None where that could not be run.
        shorter: The shape with one site less; None where that could not be run.
    """
    by_row = _axis(shape, rows, fewer) if fewer else _by_size(shape, rows, 0)
    by_site: list[int | None] = [None]
    if length and shorter:
        by_site = [_axis(shape, length, shorter)]
    elif length and len(shape) > 1:
        by_site = [k for k, size in enumerate(shape) if size == length and k != by_row] or [None]
    if by_row == -1 or -1 in by_site:
        return ()
    return tuple(Layout(by_row, each) for each in by_site)


def _axis(shape: tuple[int, ...], count: int, less: tuple[int, ...]) -> int | None:
    """Return the first axis that shrinks from `count` parts to one less; −1 if another changes."""
    if len(shape) != len(less):
        return -1
    found = None
    for axis, (size, smaller) in enumerate(zip(shape, less, strict=True)):
        if size == smaller:
            continue
        if size * (count - 1) != smaller * count:
            return -1
        found = axis if found is None else found
    return found


def _by_size(shape: tuple[int, ...], count: int, axis: int) -> int | None:
    return axis if len(shape) > axis and shape[axis] == count else None
