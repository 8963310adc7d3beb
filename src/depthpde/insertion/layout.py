"""The layouts of a field: where batch, sites and features stand in somebody's tensor.

blc  lbc  bcl  bchw  bhwc        →        [batch, sites, features]
"""

from __future__ import annotations

from enum import StrEnum

from torch import Tensor

from depthpde.shapes import Field


class FieldLayout(StrEnum):
    """The axes of a tensor by letter: batch, length, channels (features), height, width.

    >>> dp.FieldLayout("bchw") is dp.FieldLayout.BCHW
    True
    """

    BLC = "blc"
    LBC = "lbc"
    BCL = "bcl"
    BCHW = "bchw"
    BHWC = "bhwc"

    @property
    def words(self) -> str:
        """The axes by name."""
        names = {"b": "batch", "l": "length", "c": "features", "h": "height", "w": "width"}
        return f"[{', '.join(names[letter] for letter in self.value)}]"

    def features(self, u: Tensor) -> int:
        """Return the number of features of a tensor."""
        return u.shape[self.value.index("c")]

    def grid(self, u: Tensor) -> tuple[int, int] | None:
        """Return height and width of an image; None along a line."""
        if "h" not in self.value or u.ndim != 4:
            return None
        return u.shape[self.value.index("h")], u.shape[self.value.index("w")]

    def field(self, u: Tensor) -> Field:
        """Return a tensor as [batch, sites, features], rows of an image one after the other."""
        if self is FieldLayout.BLC and u.ndim == 3:  # the usual case: every call of a decoder
            return u
        if u.ndim == 2:
            return u[None]
        if u.ndim > len(self.value):
            raise ValueError(
                f"`layout` must have the axes of the tensor, got {self.value!r} for "
                f"{list(u.shape)}: this block carries several streams; describe one with family="
            )
        if u.ndim < len(self.value):  # the rows of an image are one already
            return u
        image = self.grid(u) is not None
        ordered = u.permute([self.value.index(letter) for letter in ("bhwc" if image else "blc")])
        return ordered.flatten(1, 2) if image else ordered

    def back(self, v: Field, like: Tensor) -> Tensor:
        """Return a field in the layout and shape of the tensor that it came from."""
        if self is FieldLayout.BLC and like.ndim == 3:
            return v
        if like.ndim < len(self.value):
            return v[0] if like.ndim == 2 else v
        grid = self.grid(like)
        plain = "blc" if grid is None else "bhwc"
        unfolded = v if grid is None else v.reshape(v.shape[0], *grid, v.shape[2])
        if plain == self.value:
            return unfolded
        return unfolded.permute([plain.index(letter) for letter in self.value]).contiguous()
