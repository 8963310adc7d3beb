from collections import deque

import torch
from torch import nn

from depthpde.isolation.snapshot import MemorySnapshot


class Remembers(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(2))
        self.plain, self.count = torch.zeros(2), 0
        self.kept, self.named, self.last, self.ids = [], {}, deque(maxlen=2), {1}

    def forward(self):
        self.seen.add_(1)
        self.plain.add_(1)
        self.count += 1
        self.kept.append(1)
        self.named["a"] = 1
        self.last.append(1)
        self.ids.add(2)
        self.fresh = 3
        self.register_buffer("late", torch.ones(1))


def test_all_that_a_call_leaves_behind_goes():
    model = Remembers()
    lists = model.kept, model.named, model.last, model.ids
    snapshot = MemorySnapshot(model)
    model()
    model.seen = torch.full((2,), 9.0)
    snapshot.restore()
    assert model.seen.tolist() == model.plain.tolist() == [0, 0]
    assert (model.count, model.kept, model.named, list(model.last), model.ids) == (
        0, [], {}, [], {1},
    )  # fmt: skip
    found = model.kept, model.named, model.last, model.ids
    assert all(a is b for a, b in zip(lists, found, strict=True))
    assert not hasattr(model, "fresh")
    assert not hasattr(model, "late")
