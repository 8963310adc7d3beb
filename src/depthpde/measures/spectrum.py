"""Spectrum: what the weights of a layer amplify, and at which frequencies the field lives.

    QK      singular values of W_qᵀ W_k, per head: which pairs of directions attract
    OV      singular values of W_o W_v, per head: what it writes of what it reads
    FFN     singular values of W_in and W_out
    bands   shares of ‖u‖² in four bands of the cosine transform, and in its mean (DC)
    H(ω)    what an inserted layer multiplies a wave with

Weights are matrices [out, in], as `nn.Linear` holds them.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.linalg import qr, svdvals, vector_norm

from depthpde.errors import check_positive
from depthpde.layers.transfer import measure_transfer
from depthpde.measures.tokens import num_tokens, real_field
from depthpde.operators.energy import cosine_transform
from depthpde.shapes import Field, Mask

EXACT = 2**18
"""Entries up to which the whole spectrum of a matrix is computed to know its largest value."""
STEPS = 30
"""Of Lanczos for a larger one."""


def qk_spectrum(query: Tensor, key: Tensor, heads: int, *, key_heads: int | None = None) -> Tensor:
    """Give the singular values of every head's bilinear form of scores.

        s(x, y) = xᵀ W_qᵀ W_k y / √head_dim

    Exact and cheap: both factors are reduced to their triangles first.

    Args:
        query: W_q of all heads, [heads · head_dim, dim].
        key: W_k, [key_heads · head_dim, dim]; heads of a group share one.
        heads: Number of heads.
        key_heads: Number of key heads; that of the heads by default.

    Returns:
        [heads, head_dim], from the largest to the smallest.
    """
    q = _per_head("query", query, heads)
    k = _per_head("key", key, key_heads or heads).repeat_interleave(
        heads // (key_heads or heads), 0
    )
    triangles = (qr(each.mT, mode="r").R for each in (q, k))
    left, right = triangles
    return svdvals(left @ right.mT) / q.shape[1] ** 0.5


def ov_spectrum(
    value: Tensor, out: Tensor, heads: int, *, value_heads: int | None = None
) -> Tensor:
    """Give the singular values of what every head writes of what it reads.

        W_o,h W_v,h        [dim, dim] of rank head_dim

    Args:
        value: W_v, [value_heads · head_dim, dim].
        out: W_o, [dim, heads · head_dim].
        heads: Number of heads.
        value_heads: Number of value heads; that of the heads by default.

    Returns:
        [heads, head_dim], from the largest to the smallest.
    """
    v, o = _ov_factors(value, out, heads, value_heads)
    return svdvals(qr(o, mode="r").R @ qr(v.mT, mode="r").R.mT)


def weight_spectrum(weight: Tensor) -> Tensor:
    """Give the singular values of a matrix, from the largest to the smallest."""
    return svdvals(_matrix("weight", weight))


def largest_singular_value(weight: Tensor) -> float:
    """Give the largest singular value of a matrix: exactly, or of a large one to a thousandth.

        WWᵀ Q_k = Q_k T_k + rest,   σ₁² ≈ λ₁(T_k),   Q_k an orthonormal basis of Krylov's space

    Lanczos with every new direction made orthogonal to all before it: two products with the matrix
    a step instead of the whole spectrum. Never above the true value, but for rounding.

    Args:
        weight: The matrix, [out, in].
    """
    matrix = _matrix("weight", weight)
    if matrix.numel() <= EXACT or min(matrix.shape) <= STEPS:
        return float(svdvals(matrix)[0])
    matrix = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.mT
    start = torch.randn(matrix.shape[0], generator=torch.Generator().manual_seed(0)).to(matrix)
    basis = matrix.new_zeros(matrix.shape[0], STEPS)
    products = matrix.new_zeros(STEPS, STEPS)
    direction = start / vector_norm(start)
    for k in range(STEPS):
        basis[:, k] = direction
        image = matrix @ (matrix.mT @ direction)
        known = basis[:, : k + 1]
        products[: k + 1, k] = known.mT @ image
        rest = image - known @ products[: k + 1, k]
        rest = rest - known @ (known.mT @ rest)  # once more: rounding of the first
        size = vector_norm(rest)
        if not size > 1e-6 * vector_norm(image):  # the space is exhausted
            break
        direction = rest / size
    found = torch.linalg.eigvalsh(products.double(), UPLO="U")[-1]
    return float(found.clamp_min(0.0).sqrt())


def band_shares(u: Field, valid_mask: Mask | None = None, *, num_bands: int = 4) -> Tensor:
    """Split each sequence's size into shares of frequency, its mean apart.

        share_0 = ‖û_0‖² / ‖u‖² (DC),    share_b = Σ_{k in band b, k > 0} ‖û_k‖² / ‖u‖²

    Padding is cut out, so a sequence's shares do not depend on it. Bands are of equal width.

    Args:
        u: The field.
        valid_mask: True = real token.
        num_bands: Bands beside the mean.

    Returns:
        [batch, 1 + num_bands], rows summing to one; NaN for the zero field and padding alone.
    """
    check_positive("num_bands", num_bands)
    u = real_field("u", u, valid_mask)
    lengths = num_tokens(u, valid_mask)
    shares = u.new_full((u.shape[0], 1 + num_bands), torch.nan)
    for length in sorted(set(lengths.tolist())):
        rows = lengths == length
        if length == 0:
            continue
        tokens = u[rows] if valid_mask is None else u[rows][valid_mask[rows]]
        modes = cosine_transform(tokens.reshape(-1, length, u.shape[2])).square().sum(dim=2)
        band = 1 + torch.arange(length, device=u.device) * num_bands // length
        band[0] = 0
        energy = modes.new_zeros(modes.shape[0], 1 + num_bands).index_add(1, band, modes)
        total = energy.sum(dim=1, keepdim=True)
        shares[rows] = energy / torch.where(total > 0, total, torch.nan)
    return shares


def transfer(layer: nn.Module, omega: Tensor) -> Tensor:
    """Give |H(ω)| of a layer, by its formula or, without one, measured.

    Args:
        layer: A layer that is linear and the same at every site.
        omega: Angular frequencies in radians per site, [modes].

    Returns:
        [modes, dim].
    """
    formula = getattr(layer, "transfer_function", None)
    return (formula(omega) if formula is not None else measure_transfer(layer, omega)).abs()


def _ov_factors(
    value: Tensor, out: Tensor, heads: int, value_heads: int | None
) -> tuple[Tensor, Tensor]:
    groups = value_heads or heads
    v = _per_head("value", value, groups).repeat_interleave(heads // groups, 0)
    o = _per_head("out", _matrix("out", out).mT, heads).mT
    return v, o


def _per_head(name: str, weight: Tensor, heads: int) -> Tensor:
    weight = _matrix(name, weight)
    if weight.shape[0] % check_positive("heads", heads):
        raise ValueError(
            f"`{name}` must have rows for {heads} heads, got {weight.shape[0]}; "
            "transpose it, or pass the right number of heads"
        )
    return weight.reshape(heads, -1, weight.shape[1])


def _matrix(name: str, weight: Tensor) -> Tensor:
    if weight.ndim != 2:
        raise ValueError(f"`{name}` must be a matrix [out, in], got {list(weight.shape)}")
    return weight.detach().to(torch.promote_types(weight.dtype, torch.float32))
