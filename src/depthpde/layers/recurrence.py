"""Recurrence: an LSTM as the nonlocal term, for networks without attention."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from depthpde.errors import check_factory, check_field, check_mask, check_positive, check_precision
from depthpde.shapes import Field, Mask


class Recurrence(nn.Module):
    """Mix every site with the others, by a memory that is carried along the sequence.

        A[u] = W_out concat(LSTM u, ←LSTM u)        once from the first site on, once from the last

    Padding is at the end and neither memory passes it: a site never sees what it holds, nor how
    much there is. Learned: both LSTMs and the projection.

    >>> recurrence = dp.Recurrence(dim=16)
    >>> recurrence(torch.randn(2, 10, 16)).shape
    torch.Size([2, 10, 16])

    Args:
        dim: Features of the field, and of each memory.
        device: Where the parameters live.
        dtype: Their precision.
    """

    def __init__(
        self,
        dim: int,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.dim = check_positive("dim", dim)
        check_factory(device, dtype)
        self.forth, self.back = (
            nn.LSTM(dim, dim, batch_first=True, device=device, dtype=dtype) for _ in range(2)
        )
        self.out = nn.Linear(2 * dim, dim, device=device, dtype=dtype)

    def forward(self, u: Field, *, valid_mask: Mask | None = None) -> Field:
        """Return the increment that the recurrence makes of a field.

        Args:
            u: The field, [batch, length, dim].
            valid_mask: True = real token; real tokens come first.
        """
        check_field("u", u, dim=self.dim)
        check_precision("u", u, self.out.weight)
        turned = _turned(u, valid_mask)
        forth, back = self.forth(u)[0], self.back(_take(u, turned))[0]
        return self.out(torch.cat((forth, _take(back, turned)), dim=-1))


def _turned(u: Field, valid_mask: Mask | None) -> Tensor:
    """Return the sites in reverse order, padding where it is: its own inverse, [batch, length]."""
    sites = torch.arange(u.shape[1], device=u.device).expand(u.shape[:2])
    if valid_mask is None:
        return sites.flip(1)
    check_mask("valid_mask", valid_mask, u)
    if bool((valid_mask[:, 1:] & ~valid_mask[:, :-1]).any()):
        raise ValueError(
            "`valid_mask` must have its real tokens first for a recurrence, got padding before "
            "one; pad at the end"
        )
    lengths = valid_mask.sum(dim=1, keepdim=True)
    return torch.where(sites < lengths, lengths - 1 - sites, sites)


def _take(u: Field, sites: Tensor) -> Field:
    return u.gather(1, sites[..., None].expand_as(u))
