"""Several processes as one: each takes its rows of every batch, and their gradients are added.

    g = Σ_p g_p,     g_p from rows p, p + P, p + 2P … of the batch, over all the batch's labels

The batches are those of one process, so the number of processes changes nothing but the order of
sums, and a run may go on with another number of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Self

import torch
import torch.distributed as dist
from torch import Tensor, nn

from depthpde.data.batching import Batch


@dataclass(frozen=True, slots=True)
class Processes:
    """The processes that train one model together."""

    rank: int = 0
    """Which one this is."""
    count: int = 1
    """How many there are."""

    @classmethod
    def joined(cls) -> Self:
        """Return those of torch's default process group; one alone where there is none.

        `torchrun` starts them, and ``torch.distributed.init_process_group`` joins them: with
        ``gloo`` on CPUs, ``nccl`` on GPUs.
        """
        if dist.is_available() and dist.is_initialized():
            return cls(dist.get_rank(), dist.get_world_size())
        return cls()

    @property
    def leads(self) -> bool:
        """Whether this process writes and judges for all."""
        return self.rank == 0

    def share(self, batch: Batch) -> Batch | None:
        """Return this process's rows of a batch; None where there are too few for it."""
        if self.count == 1:
            return batch
        if self.rank >= len(batch):
            return None
        whole = {each.name: getattr(batch, each.name) for each in fields(batch)}
        rows = slice(self.rank, None, self.count)
        return replace(batch, **{name: v[rows] for name, v in whole.items() if v is not None})

    def add(self, numbers: Sequence[float]) -> list[float]:
        """Add numbers over all processes."""
        return self._reduce(numbers, "SUM")

    def largest(self, numbers: Sequence[float]) -> list[float]:
        """Return the largest of each number over all processes."""
        return self._reduce(numbers, "MAX")

    def from_leader(self, numbers: Sequence[float]) -> list[float]:
        """Return the leader's numbers in all processes."""
        if self.count == 1:
            return list(numbers)
        found = self._tensor(numbers)
        dist.broadcast(found, src=0)
        return [float(each) for each in found]

    def add_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """Add the gradients of all processes, in one message.

        A parameter without a gradient anywhere stays without: AdamW passes over it.
        """
        if self.count == 1:
            return
        found = [torch.zeros_like(each) if each.grad is None else each.grad for each in parameters]
        used = torch.tensor(
            [each.grad is not None for each in parameters],
            dtype=found[0].dtype,
            device=found[0].device,
        )
        flat = torch.cat([used, *(each.flatten().to(used.dtype) for each in found)])
        dist.all_reduce(flat)
        used, *pieces = torch.split(flat, [len(used), *(each.numel() for each in found)])
        for parameter, piece, users in zip(parameters, pieces, used.tolist(), strict=True):
            parameter.grad = piece.view_as(parameter).to(parameter.dtype) if users else None

    def check_together(self, digest: str, update: int) -> None:
        """Refuse processes with different weights or updates."""
        if self.count == 1:
            return
        ours = [float(int(digest[:12], 16)), float(update)]  # 48 bits are exact in float64
        if self.add([float(ours != self.from_leader(ours))])[0]:
            raise ValueError(
                f"`model` must have the same weights in all {self.count} processes, got "
                f"others (this one at update {update}); build it from one seed, and give all "
                "processes the same folder"
            )

    def _reduce(self, numbers: Sequence[float], operation: str) -> list[float]:
        if self.count == 1:
            return list(numbers)
        found = self._tensor(numbers)
        dist.all_reduce(found, op=getattr(dist.ReduceOp, operation))
        return [float(each) for each in found]

    def _tensor(self, numbers: Sequence[float]) -> Tensor:
        device = "cuda" if dist.get_backend() == "nccl" else "cpu"
        return torch.tensor(numbers, dtype=torch.float64, device=device)
