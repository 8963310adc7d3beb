"""Every axis named once.

The names are for the reader and the type checker; at run time they are plain tensors, so that
``torch.compile`` and ``torch.export`` see nothing but tensors.

    Field        [batch, length, dim]   the field u, features last
    Mask         [batch, length]        bool, True = real token
    Segments     [batch, length]        integers, one number per packed sequence
    PerFeature   [] or [dim]            one ratio for all features, or one each
    PerEdge      [batch | 1, edges, dim | 1]   one ratio for each edge between neighbouring sites
    Edges        [batch | 1, edges]     bool, True = open: flux passes between the two sites
"""

from __future__ import annotations

from typing import TypeAlias

from torch import Tensor

Field: TypeAlias = Tensor
Mask: TypeAlias = Tensor
Segments: TypeAlias = Tensor
PerFeature: TypeAlias = Tensor
PerEdge: TypeAlias = Tensor
Edges: TypeAlias = Tensor
