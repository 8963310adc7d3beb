"""Estimators of mutual information from samples, in nats.

    I(X; Y) = Σ p(x, y) log p(x, y) / p(x) p(y)

    neighbours    both continuous: ψ(k) + ψ(n) − ⟨ψ(n_x + 1) + ψ(n_y + 1)⟩       (KSG, max-norm)
                  one discrete:    ψ(n) + ψ(k) − ⟨ψ(n_label)⟩ − ⟨ψ(m)⟩           (Ross)
    bins          plug-in of a histogram of equal shares, Miller–Madow corrected

Neighbours have little bias in a few dimensions and miss information that is too high for n; bins
are crude and see every function of the bins. None of them is right for a hundred dimensions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Labels = NDArray[np.int64]

JITTER = 1e-10
"""Share of the spread added as noise, so that equal numbers have an order."""


def by_neighbours(x: Numbers, y: Numbers, *, k: int = 5) -> float:
    """Estimate the information between two continuous samples.

        I ≈ ψ(k) + ψ(n) − mean_i (ψ(n_x(i) + 1) + ψ(n_y(i) + 1))

    n_x(i) counts the points nearer to i in x than its k-th neighbour in (x, y) is.

    Args:
        x: [n, dim].
        y: [n, dim].
        k: Neighbours.
    """
    from scipy.spatial import cKDTree
    from scipy.special import digamma

    x, y = unit_spread(x, 1), unit_spread(y, 2)
    both = np.concatenate((x, y), axis=1)
    distance = cKDTree(both).query(both, k=k + 1, p=np.inf)[0][:, -1]
    inside = np.nextafter(distance, 0)  # strictly nearer than the k-th
    near = [cKDTree(z).query_ball_point(z, inside, p=np.inf, return_length=True) for z in (x, y)]
    return float(digamma(k) + digamma(len(x)) - np.mean(digamma(near[0]) + digamma(near[1])))


def by_neighbours_of_label(t: Numbers, labels: Labels, *, k: int = 5) -> float:
    """Estimate the information between a continuous sample and its labels.

        I ≈ ψ(n) + ψ(k) − mean_i (ψ(n_label(i)) + ψ(m(i)))

    m(i) counts the points of all labels as near to i as its k-th neighbour of its own label is.
    A label seen once has no neighbour and is left out.

    Args:
        t: [n, dim].
        labels: [n].
        k: Neighbours; fewer where a label is rarer.
    """
    from scipy.spatial import cKDTree
    from scipy.special import digamma

    t = unit_spread(t, 3)
    tree = cKDTree(t)
    parts = []
    for label in np.unique(labels):
        own = t[labels == label]
        if len(own) < 2:
            continue
        few = min(k, len(own) - 1)
        distance = cKDTree(own).query(own, k=few + 1, p=np.inf)[0][:, -1]
        counted = tree.query_ball_point(own, np.nextafter(distance, np.inf), p=np.inf,
                                        return_length=True) - 1  # fmt: skip
        parts.append(digamma(few) - digamma(len(own)) - digamma(counted))
    every = np.concatenate(parts)
    return float(digamma(len(every)) + every.mean())


def by_bins(x: Labels, y: Labels) -> float:
    """Estimate the information between two discrete samples.

        I ≈ Σ p̂ log p̂(x, y) / p̂(x) p̂(y) − (cells_xy − cells_x − cells_y + 1) / 2n

    The second part is Miller and Madow's correction of the histogram's optimism.

    Args:
        x: [n], the cell of each point.
        y: [n], likewise.
    """
    _, joint = np.unique(np.stack((x, y)), axis=1, return_counts=True)
    counts = [np.unique(each, return_counts=True)[1] for each in (x, y)]
    n = len(x)
    plain = _entropy(counts[0]) + _entropy(counts[1]) - _entropy(joint)
    return float(plain - (len(joint) - len(counts[0]) - len(counts[1]) + 1) / (2 * n))


def cells(x: Numbers, bins: int) -> Labels:
    """Give every point the number of its cell, each coordinate cut into equal shares.

    Args:
        x: [n, dim].
        bins: Shares of one coordinate.
    """
    ranks = np.argsort(np.argsort(x, axis=0, kind="stable"), axis=0, kind="stable")
    shares = ranks * bins // len(x)
    whole: Labels = shares @ (bins ** np.arange(x.shape[1]))
    return whole


def entropy_of_labels(labels: Labels) -> float:
    """Return the entropy of labels: the most that a representation can hold of them."""
    return _entropy(np.unique(labels, return_counts=True)[1])


def _entropy(counts: NDArray[np.int64]) -> float:
    shares = counts / counts.sum()
    return float(-(shares * np.log(shares)).sum())


def unit_spread(x: Numbers, stream: int) -> Numbers:
    """Bring every coordinate to unit spread, with a jitter that parts equal numbers.

    Args:
        x: [n, dim].
        stream: Seed of the jitter.
    """
    size = x.std(axis=0)
    scaled = (x - x.mean(axis=0)) / np.where(size > 0, size, 1.0)
    noise = np.random.default_rng(stream).standard_normal(x.shape)
    spread: Numbers = scaled + JITTER * noise
    return spread
