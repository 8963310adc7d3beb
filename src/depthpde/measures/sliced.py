"""Sliced mutual information: the mean over random directions of two representations.

    SI(X; T) = mean over directions θ, φ of I(θᵀX; φᵀT),      SI(T; Y) = mean over θ of I(θᵀT; Y)

Every term is an estimate in one dimension, where neighbours are right, so the whole holds in any
dimension (Goldfeld & Greenewald 2021). It is 0 exactly if the two are independent. It is *not* the
mutual information: a direction of many sees a part of it, about 1/dim of what one direction holds,
so compare SI with SI of the same width alone, such as with SI(X; X). Where features have become
one, every direction sees all there is: a collapsed layer reads more than one that knows the same.

Each comes with its null and its positive control, made with the same directions:

    null       one side shuffled, several times: mean and spread of what is read where nothing is
    control    Gaussians with the sample's own covariance and a truth that is known
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from depthpde.errors import check_positive
from depthpde.measures.estimators import Labels, Numbers, unit_spread
from depthpde.seeds import derive

LEAST = 50
"""Examples below which nothing is estimated."""
NULLS = 8
"""Shuffled estimates."""
NOTHING = 0.01
"""Nats that the mean of the nulls may be off."""
BEYOND = 3.7
"""Spreads of eight nulls that a new one exceeds once in 200 times: t₇,₀.₉₉₅ √(1 + 1/8)."""
TOLERANCE = 0.25
"""Share of the known truth, or `BEYOND` spreads of the null, by which the control may be missed."""
NODES = 64
"""Of the quadrature that gives the truth of a class control."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SlicedInformation:
    """One estimate, in nats, with what is known about its worth."""

    value: float
    error: float
    """Standard error of the value over directions; more slices make it smaller."""
    null: float
    """Mean of the same with one side shuffled, whose truth is 0."""
    null_spread: float
    """Standard deviation of those."""
    recovered: float
    """The estimate for the control."""
    known: float
    """The control's truth."""
    examples: int
    slices: int
    unreliable: str
    """Why the value must not be trusted; empty if no check failed."""

    @property
    def detected(self) -> bool:
        """Whether the value is beyond its null: there is something."""
        return self.value > self.null + BEYOND * self.null_spread


def sliced_between(
    x: Tensor, t: Tensor, *, slices: int = 64, k: int = 5, seed: int = 0
) -> SlicedInformation:
    """Estimate the sliced information between two representations of the same examples.

        mean over θ, φ of KSG(θᵀx, φᵀt)

        sliced_between(embedding, states[3]).value / sliced_between(embedding, embedding).value

    Args:
        x: [n, dim], such as the pooled embedding of the input.
        t: [n, other dim], such as the pooled field of a layer.
        slices: Pairs of directions; the error falls as 1/√slices.
        k: Neighbours.
        seed: Seed of directions, shuffles and control.
    """
    a, b = _sample(x, slices, k), _sample(t, slices, k)
    if len(a) != len(b):
        raise ValueError(
            f"`x` and `t` must be of the same examples, got {len(a)} and {len(b)}; pool both alike"
        )
    random = np.random.default_rng(derive(seed, "sliced"))
    theta, phi = (_directions(random, slices, each.shape[1]) for each in (a, b))
    order = [random.permutation(len(b)) for _ in range(NULLS)]

    def estimate(first: Numbers, second: Numbers) -> Numbers:
        pairs = zip((first @ theta.T).T, (second @ phi.T).T, strict=True)
        return np.array([_on_a_line(u, v, k) for u, v in pairs])

    values = estimate(a, b)
    nulls = [float(estimate(a, b[each]).mean()) for each in order]
    first, second, known = _gaussians(random, a, b, theta, phi, float(values.mean()))
    return _judged(values, nulls, float(estimate(first, second).mean()), known, len(a))


def sliced_about_label(
    t: Tensor, labels: Tensor, *, slices: int = 64, k: int = 5, seed: int = 0
) -> SlicedInformation:
    """Estimate the sliced information between a representation and its labels.

        mean over θ of Ross(θᵀt, labels)

    Args:
        t: [n, dim].
        labels: [n], whole numbers.
        slices: Directions.
        k: Neighbours.
        seed: Seed of directions, shuffles and control.
    """
    sample = _sample(t, slices, k)
    classes: Labels = labels.detach().cpu().numpy().astype(np.int64)
    if classes.shape != (len(sample),):
        raise ValueError(
            f"`labels` must be one for each of {len(sample)} examples, got {list(classes.shape)}; "
            "give the labels of the same batch"
        )
    random = np.random.default_rng(derive(seed, "sliced"))
    theta = _directions(random, slices, sample.shape[1])
    order = [random.permutation(len(classes)) for _ in range(NULLS)]

    def estimate(points: Numbers, classes: Labels) -> Numbers:
        lines = (points @ theta.T).T
        return np.array([_labels_on_a_line(each, classes, k) for each in lines])

    values = estimate(sample, classes)
    nulls = [float(estimate(sample, classes[each]).mean()) for each in order]
    points, known = _classes(random, sample, classes, theta)
    return _judged(values, nulls, float(estimate(points, classes).mean()), known, len(sample))


def _sample(t: Tensor, slices: int, k: int) -> Numbers:
    check_positive("slices", slices)
    check_positive("k", k)
    if t.ndim != 2 or t.shape[0] < LEAST:
        raise ValueError(
            f"`t` must be one vector for each of at least {LEAST} examples, [n, dim], got "
            f"{list(t.shape)}; pool the field, and give more examples"
        )
    if not bool(t.isfinite().all()):
        raise ValueError("`t` must hold finite numbers, got NaN or infinity; leave the layer out")
    found: Numbers = t.detach().double().cpu().numpy()
    return found - found.mean(axis=0)


def _on_a_line(u: Numbers, v: Numbers, k: int) -> float:
    """Estimate the information between two numbers, as `by_neighbours` does, in half the time.

    I ≈ ψ(k) + ψ(n) − mean_i (ψ(n_u(i) + 1) + ψ(n_v(i) + 1)),   n_u counted in a sorted list
    """
    from scipy.spatial import cKDTree
    from scipy.special import digamma

    both = np.stack([each / (each.std() or 1.0) for each in (u, v)], axis=1)
    distance = cKDTree(both).query(both, k=k + 1, p=np.inf)[0][:, -1]
    total = np.zeros(len(u))
    for each in both.T:
        line = np.sort(each)
        upper = np.searchsorted(line, each + distance, side="left")
        inside = upper - np.searchsorted(line, each - distance, side="right")
        total += digamma(np.maximum(inside, 1))  # itself at least, where numbers tie
    return float(digamma(k) + digamma(len(u)) - total.mean())


def _labels_on_a_line(t: Numbers, classes: Labels, k: int) -> float:
    """Estimate the information between a number and a label, as `by_neighbours_of_label` does.

    On a sorted line the k nearest of a point are k of its 2k next, so no tree is needed: the
    distance of the k-th is the least, over the windows of k + 1 points around it, of the farther
    end. A tenth of the time.
    """
    from scipy.special import digamma

    line = unit_spread(t[:, None], 3)[:, 0]
    every = np.sort(line)
    parts = []
    for label in np.unique(classes):
        own = np.sort(line[classes == label])
        if len(own) < 2:
            continue
        few = min(k, len(own) - 1)
        distance = np.full(len(own), np.inf)
        for below in range(few + 1):
            inside = slice(below, len(own) - few + below)
            left, right = own[: len(own) - few], own[few:]
            farther = np.maximum(own[inside] - left, right - own[inside])
            distance[inside] = np.minimum(distance[inside], farther)
        reach = np.nextafter(distance, np.inf)
        upper = np.searchsorted(every, own + reach, side="right")
        counted = upper - np.searchsorted(every, own - reach, side="left") - 1
        parts.append(digamma(few) - digamma(len(own)) - digamma(np.maximum(counted, 1)))
    found = np.concatenate(parts)
    return float(digamma(len(found)) + found.mean())


def _directions(random: np.random.Generator, count: int, dim: int) -> Numbers:
    """Draw directions, uniform on the sphere."""
    drawn = random.standard_normal((count, dim))
    directions: Numbers = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    return directions


def _gaussians(
    random: np.random.Generator, a: Numbers, b: Numbers, theta: Numbers, phi: Numbers, value: float
) -> tuple[Numbers, Numbers, float]:
    """Draw Gaussians with the covariances of a and b that share ρ of their whitened directions.

        u = R_a z,   v = R_b (ρ z' + √(1 − ρ²) w),   z' the leading coordinates of z
        known = mean over θ, φ of −½ log(1 − c²),   c the correlation of θᵀu and φᵀv

    ρ is chosen so that the truth is near the estimate that it judges, as far as ρ < 1 allows.
    """
    roots = [_root(each) for each in (a, b)]
    shared = min(a.shape[1], b.shape[1])
    left, right = theta @ roots[0], phi @ roots[1]
    norms = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    full = (left[:, :shared] * right[:, :shared]).sum(axis=1) / np.where(norms > 0, norms, 1.0)
    rhos = np.linspace(0.3, 0.99, 70)
    truths = np.array([-0.5 * np.log1p(-((rho * full) ** 2)).mean() for rho in rhos])
    at = int(np.abs(truths - value).argmin())
    z = random.standard_normal((len(a), a.shape[1]))
    w = random.standard_normal((len(b), b.shape[1]))
    w[:, :shared] = rhos[at] * z[:, :shared] + math.sqrt(1 - rhos[at] ** 2) * w[:, :shared]
    return z @ roots[0].T, w @ roots[1].T, float(truths[at])


def _root(a: Numbers) -> Numbers:
    """Return a square root of the covariance, its columns by falling size."""
    _, sizes, directions = np.linalg.svd(a / len(a) ** 0.5, full_matrices=False)
    root = np.zeros((a.shape[1], a.shape[1]))
    root[:, : len(sizes)] = directions.T * sizes
    return root


def _classes(
    random: np.random.Generator, t: Numbers, classes: Labels, theta: Numbers
) -> tuple[Numbers, float]:
    """Draw a Gaussian for each class, at the class's own mean and with the covariance around it.

    known = mean over θ of H(mixture of N(θᵀm_c, s²)) − H(N(0, s²)),   by quadrature
    """
    names, index, counts = np.unique(classes, return_inverse=True, return_counts=True)
    means = np.stack([t[classes == name].mean(axis=0) for name in names])
    root = _root(t - means[index])
    points = means[index] + random.standard_normal(t.shape) @ root.T
    shares = counts / counts.sum()
    centers, spreads = means @ theta.T, np.linalg.norm(theta @ root, axis=1)
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    weights = weights / weights.sum()
    known = []
    for center, spread in zip(centers.T, np.where(spreads > 0, spreads, 1e-12), strict=True):
        # I = Σ_c share_c E[log p(u | c) − log p(u)],  u = center_c + spread · node
        moves = (center[:, None, None] + spread * nodes[:, None] - center) / spread
        logs = -0.5 * moves**2
        mixture = np.log((np.exp(logs) * shares).sum(axis=2))
        own = -0.5 * nodes**2
        known.append(float((shares[:, None] * weights * (own - mixture)).sum()))
    return points, float(np.mean(known))


def _judged(
    values: Numbers, nulls: list[float], recovered: float, known: float, examples: int
) -> SlicedInformation:
    null, spread = float(np.mean(nulls)), float(np.std(nulls, ddof=1))
    found = []
    if abs(null) > NOTHING:
        found.append(f"reads {null:.3f} nats where there are none")
    if abs(recovered - known) > max(BEYOND * spread, TOLERANCE * known):
        found.append(f"reads {recovered:.3f} nats where there are {known:.3f}")
    return SlicedInformation(
        value=float(values.mean()),
        error=float(values.std(ddof=1) / len(values) ** 0.5) if len(values) > 1 else math.inf,
        null=null,
        null_spread=spread,
        recovered=recovered,
        known=known,
        examples=examples,
        slices=len(values),
        unreliable="; ".join(found),
    )
