"""Information along depth: what a layer still knows of the input, and what of the label.

    I(X; T_l) and I(T_l; Y),    T_l the field of layer l, pooled and compressed

A network is a function, so the information of its exact numbers is infinite or trivial: every
figure here is that of an estimator, on a few principal components. Each comes with three checks,
and is marked where one fails:

    chance      the same estimate with one side shuffled, whose truth is 0
    recovery    the same estimate on a sample of the same size whose truth is known
    ceiling     I(T; Y) ≤ H(Y)

`information_plane` gives the sliced information beside it (`sliced.py`): it reads all dimensions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from torch import Tensor

from depthpde.errors import check_one_of, check_positive
from depthpde.measures.estimators import (
    Labels,
    Numbers,
    by_bins,
    by_neighbours,
    by_neighbours_of_label,
    cells,
    entropy_of_labels,
)
from depthpde.measures.sliced import SlicedInformation, sliced_about_label, sliced_between

TOLERANCE = 0.15
"""Nats, and share of the truth, by which an estimator may miss a known value."""
LEAST = 50
"""Examples below which nothing is estimated."""


class Estimator(StrEnum):
    """How information is estimated."""

    NEIGHBOURS = "neighbours"
    """k-nearest neighbours: KSG, and Ross's form for labels."""
    BINS = "bins"
    """A histogram of equal shares."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Information:
    """One estimate, in nats, with what is known about its worth."""

    value: float
    """The estimate."""
    chance: float
    """The same with one side shuffled: what is read where nothing is."""
    recovered: float
    """The estimate for a sample of this size whose truth is `known`."""
    known: float
    """That truth."""
    estimator: Estimator
    """How."""
    examples: int
    """Sample size."""
    dims: int
    """Principal components kept of each continuous side."""
    unreliable: str
    """Why the value must not be trusted; empty if no check failed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanePoint:
    """The position of a layer in the information plane."""

    layer: int
    """0 is the embedded input."""
    about_input: Information
    """I(X; T)."""
    about_label: Information
    """I(T; Y)."""
    sliced_input: SlicedInformation | None = None
    """SI(X; T); None where no slices were asked for. Compare it with that of layer 0, SI(X; X)."""
    sliced_label: SlicedInformation | None = None
    """SI(T; Y), likewise."""


def compress(u: Tensor, dims: int) -> Numbers:
    """Keep the leading principal components of a sample.

        [n, dim] → [n, dims],    fewer where the sample has fewer

    Args:
        u: One vector for each example.
        dims: Components.
    """
    x = u.detach().double().cpu().numpy()
    x = x - x.mean(axis=0)
    left, sizes, _ = np.linalg.svd(x, full_matrices=False)
    real = max(1, int((sizes > 1e-9 * max(sizes[0], 1e-300)).sum()))
    kept: Numbers = (left * sizes)[:, : min(dims, real)]
    return kept


def information_between(
    x: Tensor,
    t: Tensor,
    *,
    estimator: Estimator | str = Estimator.NEIGHBOURS,
    dims: int = 2,
    k: int = 5,
    bins: int = 8,
) -> Information:
    """Estimate the mutual information of two representations of the same examples.

    I(X; T) of their leading principal components

    Args:
        x: [n, dim], such as the pooled embedding of the input.
        t: [n, dim], such as the pooled field of a layer.
        estimator: How.
        dims: Principal components kept of each.
        k: Neighbours.
        bins: Shares of one coordinate.
    """
    kind = check_one_of("estimator", estimator, Estimator)
    _check_sample(x, t.shape[0], dims, k, bins)
    a, b = compress(x, dims), compress(t, dims)

    def estimate(first: Numbers, second: Numbers) -> float:
        if kind is Estimator.NEIGHBOURS:
            return by_neighbours(first, second, k=k)
        return by_bins(cells(first, bins), cells(second, bins))

    value, chance = estimate(a, b), estimate(a, b[_shuffle(len(b))])
    known = max(value, 0.1)
    recovered = estimate(*_gaussian(len(a), min(a.shape[1], b.shape[1]), known))
    return Information(
        value=value, chance=chance, recovered=recovered, known=known, estimator=kind,
        examples=len(a), dims=dims, unreliable=_judge(chance, recovered, known, math.inf, value),
    )  # fmt: skip


def information_about_label(
    t: Tensor,
    labels: Tensor,
    *,
    estimator: Estimator | str = Estimator.NEIGHBOURS,
    dims: int = 2,
    k: int = 5,
    bins: int = 8,
) -> Information:
    """Estimate the mutual information of a representation and the label.

    I(T; Y) ≤ H(Y)

    Args:
        t: [n, dim].
        labels: [n], whole numbers.
        estimator: How.
        dims: Principal components kept.
        k: Neighbours.
        bins: Shares of one coordinate.
    """
    kind = check_one_of("estimator", estimator, Estimator)
    _check_sample(t, labels.shape[0], dims, k, bins)
    sample, truth = compress(t, dims), labels.detach().cpu().numpy().astype(np.int64)

    def estimate(points: Numbers, classes: Labels) -> float:
        if kind is Estimator.NEIGHBOURS:
            return by_neighbours_of_label(points, classes, k=k)
        return by_bins(cells(points, bins), classes)

    value, chance = estimate(sample, truth), estimate(sample, truth[_shuffle(len(truth))])
    count = len(np.unique(truth))
    points, classes, known = _erased(len(truth), sample.shape[1], count, value)
    recovered, ceiling = estimate(points, classes), entropy_of_labels(truth)
    return Information(
        value=value, chance=chance, recovered=recovered, known=known, estimator=kind,
        examples=len(truth), dims=dims, unreliable=_judge(chance, recovered, known, ceiling, value),
    )  # fmt: skip


def information_plane(
    states: Sequence[Tensor],
    labels: Tensor,
    *,
    estimator: Estimator | str = Estimator.NEIGHBOURS,
    dims: int = 2,
    slices: int = 32,
) -> tuple[PlanePoint, ...]:
    """Place every layer in the information plane, by an estimate of the whole and by slices.

        (I(X; T_l), I(T_l; Y)) and (SI(X; T_l), SI(T_l; Y)),    X the first state

    Args:
        states: One vector for each example, [n, dim], for each layer; the first is the input's.
        labels: [n].
        estimator: How the whole is estimated.
        dims: Principal components kept for it.
        slices: Random directions of the sliced estimates; 0 leaves these out.
    """
    x = states[0]
    return tuple(
        PlanePoint(
            layer=layer,
            about_input=information_between(x, state, estimator=estimator, dims=dims),
            about_label=information_about_label(state, labels, estimator=estimator, dims=dims),
            sliced_input=sliced_between(x, state, slices=slices) if slices else None,
            sliced_label=sliced_about_label(state, labels, slices=slices) if slices else None,
        )
        for layer, state in enumerate(states)
    )


def gaussian_information(correlation: float, dims: int) -> float:
    """Give the information between two Gaussians, coordinate by coordinate correlated.

    I = −(dims / 2) log(1 − ρ²)
    """
    return -0.5 * dims * math.log1p(-(correlation**2))


def _judge(chance: float, recovered: float, known: float, ceiling: float, value: float) -> str:
    found = []
    if abs(chance) > TOLERANCE:
        found.append(f"reads {chance:.2f} nats where there are none")
    if abs(recovered - known) > TOLERANCE * max(1.0, known):
        found.append(f"reads {recovered:.2f} nats where there are {known:.2f}")
    if value > ceiling + TOLERANCE:
        found.append(f"reads more than the {ceiling:.2f} nats of the labels")
    return "; ".join(found)


def _check_sample(t: Tensor, others: int, dims: int, k: int, bins: int) -> None:
    for name, value in (("dims", dims), ("k", k), ("bins", bins)):
        check_positive(name, value)
    if t.ndim != 2 or t.shape[0] != others or t.shape[0] < LEAST:
        raise ValueError(
            f"`t` must be one vector for each of at least {LEAST} examples, [n, dim], got "
            f"{list(t.shape)} beside {others}; pool the field, and give more examples"
        )
    if not bool(t.isfinite().all()):
        raise ValueError("`t` must hold finite numbers, got NaN or infinity; leave the layer out")


def _shuffle(n: int) -> Labels:
    return np.random.default_rng(0).permutation(n)


def _gaussian(n: int, dims: int, known: float) -> tuple[Numbers, Numbers]:
    """Draw two Gaussians of known mutual information."""
    rho = math.sqrt(-math.expm1(-2 * known / dims))
    random = np.random.default_rng(1)
    x, noise = random.standard_normal((2, n, dims))
    return x, rho * x + math.sqrt(1 - rho**2) * noise


def _erased(n: int, dims: int, classes: int, known: float) -> tuple[Numbers, Labels, float]:
    """Draw a class c and a point of [c, c + 1), or of [m, m + 1) with probability 1 − q.

    I = q log m: an erasure channel, chosen to carry about the amount that was estimated.
    """
    most = math.log(classes) if classes > 1 else 0.0
    share = min(max(known / most, 0.05), 1.0) if most else 0.0
    random = np.random.default_rng(2)
    labels = random.integers(classes, size=n)
    points = random.random((n, dims))
    points[:, 0] += np.where(random.random(n) < share, labels, classes)
    return points, labels, share * most
