"""Lyapunov exponents: how fast two fields that start close together part with depth.

    ‖δu(L)‖ ≈ e^{λ L} ‖δu(0)‖,        λ_k = log σ_k(J_L … J_1) / L

J_l is the Jacobian of block l along the way. The product is never formed: tangents are carried
through it and made orthogonal after every block (QR), forth and back until they lie on the
directions that grow most. A Jacobian meets vectors only: Jᵀv by one backward pass, Jv by a second
one through the first, which every twice differentiable map allows, fused kernels too. Attention
must be torch's own plain one for that, and is, while the measure runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from depthpde.errors import check_field, check_mask, check_positive
from depthpde.shapes import Field, Mask

Map = Callable[[Field], Field]
"""One block: a field to a field of the same shape."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class LyapunovSpectrum:
    """The leading finite-time exponents of a product of blocks."""

    exponents: Tensor
    """[batch, exponents], per block, the largest first."""
    growth: Tensor
    """[blocks, batch, exponents]: what each block adds; their mean is `exponents`."""
    residual: float
    """Largest change of an exponent in the last round: how far from converged."""

    @property
    def largest(self) -> Tensor:
        """The largest exponent of each example, [batch]: above 0 neighbours part."""
        return self.exponents[:, 0]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class JacobianNorms:
    """The spectral norm of each block's Jacobian."""

    norms: Tensor
    """[blocks, batch]: the most that a small change can grow in a block."""
    residual: float
    """Largest relative change in the last iteration: how far from converged."""


class Linearised:
    """A map at one field: what it does to small changes.

        J v = d/dε F(u + εv),        Jᵀ w = ∂⟨w, F(u)⟩/∂u

    Args:
        block: The map.
        u: The field.
        valid_mask: True = real token; padding is held still.
    """

    def __init__(self, block: Map, u: Field, valid_mask: Mask | None = None) -> None:
        self.keep = None if valid_mask is None else valid_mask[..., None].to(u.dtype)
        with torch.enable_grad(), sdpa_kernel(SDPBackend.MATH):
            self._u = u.detach().clone().requires_grad_(True)
            self._out = block(self._u)
            if self._out.shape != u.shape:
                raise ValueError(
                    "`maps` must give a field of the shape they take, got "
                    f"{list(self._out.shape)} from {list(u.shape)}; measure block by block"
                )
            self._probe = torch.zeros_like(self._out, requires_grad=True)
            (self._back,) = torch.autograd.grad(self._out, self._u, self._probe, create_graph=True)

    @property
    def value(self) -> Field:
        """F(u)."""
        return self._out.detach()

    def forth(self, v: Field) -> Field:
        """Give J v."""
        with sdpa_kernel(SDPBackend.MATH):
            (change,) = torch.autograd.grad(
                self._back, self._probe, self._masked(v), retain_graph=True
            )
        return self._masked(change)

    def back(self, w: Field) -> Field:
        """Give Jᵀ w."""
        with sdpa_kernel(SDPBackend.MATH):
            (change,) = torch.autograd.grad(self._out, self._u, self._masked(w), retain_graph=True)
        return self._masked(change)

    def _masked(self, v: Field) -> Field:
        return v if self.keep is None else v * self.keep


def lyapunov_spectrum(
    maps: Sequence[Map],
    u0: Field,
    *,
    exponents: int = 4,
    rounds: int = 4,
    valid_mask: Mask | None = None,
    generator: torch.Generator | None = None,
) -> LyapunovSpectrum:
    """Find the leading exponents of a product of blocks, for each example by itself.

        forth   Q_l R_l = J_l Q_{l−1}       back   Q_{l−1} R = J_lᵀ Q_l       λ_k = mean log R_kk

    Each round is one step of subspace iteration on JᵀJ: it converges like the ratio of neighbouring
    singular values of the whole product, squared.

    Args:
        maps: The blocks, in order.
        u0: The field that enters the first.
        exponents: How many, at most length · dim.
        rounds: Sweeps forth and back.
        valid_mask: True = real token.
        generator: Source of the first tangents; a fixed one unless given.
    """
    layers = _linearise(maps, u0, valid_mask)
    check_positive("exponents", exponents)
    check_positive("rounds", rounds)
    free = u0[0].numel() if valid_mask is None else int(valid_mask.sum(1).min()) * u0.shape[2]
    if exponents > free:
        raise ValueError(
            f"`exponents` must be at most {free}, the numbers in the shortest example, got "
            f"{exponents}"
        )
    generator = generator or torch.Generator().manual_seed(0)
    first = _draw((exponents, *u0.shape), generator, u0)
    tangents, _ = _orthogonal(torch.stack([layers[0]._masked(each) for each in first]))
    found = u0.new_full((u0.shape[0], exponents), torch.inf)
    change = torch.inf
    for number in range(rounds):
        growth = []
        for layer in layers:
            tangents, sizes = _orthogonal(torch.stack([layer.forth(each) for each in tangents]))
            growth.append(sizes)
        before, found = found, torch.stack(growth).mean(dim=0)
        change = float((found - before).abs().max())
        if number + 1 < rounds:
            for layer in reversed(layers):
                tangents, _ = _orthogonal(torch.stack([layer.back(each) for each in tangents]))
    return LyapunovSpectrum(exponents=found, growth=torch.stack(growth), residual=change)


def jacobian_norms(
    maps: Sequence[Map],
    u0: Field,
    *,
    iterations: int = 20,
    valid_mask: Mask | None = None,
    generator: torch.Generator | None = None,
) -> JacobianNorms:
    """Find the spectral norm of every block's Jacobian along the way, by power iteration.

        v ← JᵀJv / ‖JᵀJv‖,        ‖J‖ = lim ‖Jv‖

    A lower bound at every iteration, for each example by itself.

    Args:
        maps: The blocks, in order.
        u0: The field that enters the first.
        iterations: Of the power iteration.
        valid_mask: True = real token.
        generator: Source of the first vector; a fixed one unless given.
    """
    check_positive("iterations", iterations)
    generator = generator or torch.Generator().manual_seed(0)
    norms, worst = [], 0.0
    for layer in _linearise(maps, u0, valid_mask):
        v = layer._masked(_draw(tuple(u0.shape), generator, u0))
        size = u0.new_full((u0.shape[0],), torch.inf)
        before = size
        for _ in range(iterations):
            v = v / _size(v).clamp_min(torch.finfo(u0.dtype).tiny)[:, None, None]
            out = layer.forth(v)
            before, size = size, _size(out)
            v = layer.back(out)
        worst = max(worst, float(((size - before).abs() / size.clamp_min(1e-30)).max()))
        norms.append(size)
    return JacobianNorms(norms=torch.stack(norms), residual=worst)


def _linearise(maps: Sequence[Map], u0: Field, valid_mask: Mask | None) -> list[Linearised]:
    check_field("u0", u0)
    if valid_mask is not None:
        check_mask("valid_mask", valid_mask, u0)
    if not maps:
        raise ValueError("`maps` must hold at least one block, got none")
    layers: list[Linearised] = []
    u = u0
    for block in maps:
        layers.append(Linearised(block, u, valid_mask))
        u = layers[-1].value
    return layers


def _draw(shape: tuple[int, ...], generator: torch.Generator, like: Field) -> Tensor:
    return torch.randn(shape, generator=generator, device=generator.device).to(like)


def _orthogonal(tangents: Tensor) -> tuple[Tensor, Tensor]:
    """Make tangents orthonormal example by example, and return the factor each was stretched by."""
    count, batch, length, dim = tangents.shape
    columns = tangents.permute(1, 2, 3, 0).reshape(batch, length * dim, count)
    q, r = torch.linalg.qr(columns)
    sizes = torch.diagonal(r, dim1=1, dim2=2).abs().clamp_min(torch.finfo(r.dtype).tiny).log()
    return q.reshape(batch, length, dim, count).permute(3, 0, 1, 2), sizes


def _size(v: Field) -> Tensor:
    size: Tensor = torch.linalg.vector_norm(v, dim=(1, 2))
    return size
