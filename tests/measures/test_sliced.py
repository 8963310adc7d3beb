"""Sliced information: right in many dimensions, 0 where there is nothing, honest of itself."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from depthpde.measures.estimators import by_neighbours, by_neighbours_of_label
from depthpde.measures.information import gaussian_information, information_between
from depthpde.measures.sliced import (
    _labels_on_a_line,
    _on_a_line,
    sliced_about_label,
    sliced_between,
)


def draw(seed, n, dim):
    return torch.randn(n, dim, generator=torch.Generator().manual_seed(seed))


def related(n, dim, rho):
    x = draw(0, n, dim)
    return x, rho * x + math.sqrt(1 - rho**2) * draw(1, n, dim)


def test_one_dimension_is_the_plain_information():
    x, y = related(500, 1, 0.8)
    found = sliced_between(x, y, slices=2)
    assert found.value == pytest.approx(gaussian_information(0.8, 1), abs=0.1)
    plain = by_neighbours(x.double().numpy(), y.double().numpy())
    assert _on_a_line(*(z.double().numpy()[:, 0] for z in (x, y)), 5) == pytest.approx(
        plain, abs=0.02
    )


@pytest.mark.parametrize("counts", [[100, 60, 3], [200], [80, 1, 90]])
def test_a_label_on_a_line_is_the_estimate_of_the_tree(counts):
    labels = np.repeat(np.arange(len(counts)), counts)
    line = np.random.default_rng(3).standard_normal(len(labels)) + 0.8 * labels
    line[:20] = 0.5  # ties
    tree = by_neighbours_of_label(line[:, None], labels, k=5)
    assert _labels_on_a_line(line, labels, 5) == pytest.approx(tree, abs=1e-9)


@pytest.mark.parametrize("dim", [2, 16])
def test_gaussians_in_many_dimensions_are_recovered(dim):
    # θᵀX and φᵀY are Gaussian with correlation ρ θᵀφ: the truth is an integral over θᵀφ.
    rho, n = 0.9, 400
    x, y = related(n, dim, rho)
    t = np.linspace(-1, 1, 20_001)[1:-1]
    density = (1 - t**2) ** ((dim - 3) / 2)
    truth = float((density * -0.5 * np.log1p(-((rho * t) ** 2))).sum() / density.sum())
    found = sliced_between(x, y, slices=160)
    assert found.value == pytest.approx(truth, abs=3.5 * found.error)
    assert found.error < 0.2 * truth
    assert found.detected
    assert not found.unreliable
    assert found.recovered == pytest.approx(found.known, rel=0.3)


def test_it_holds_where_neighbours_of_the_whole_do_not():
    x, y = related(300, 32, 0.9)
    whole = information_between(x, y, dims=32)
    assert whole.unreliable  # reads a fraction of 26.6 nats
    assert not sliced_between(x * 1.0, y).unreliable


@pytest.mark.parametrize("dim", [2, 64])
def test_independent_samples_tell_nothing(dim):
    found = sliced_between(draw(0, 200, dim), draw(1, 200, dim))
    assert not found.detected
    assert abs(found.null) < 0.01
    labels = torch.randint(0, 4, (200,), generator=torch.Generator().manual_seed(2))
    assert not sliced_about_label(draw(0, 200, dim), labels, slices=24).detected


def test_classes_at_different_places_are_told_and_recovered():
    labels = torch.arange(300) % 4
    places = draw(5, 4, 32)
    found = sliced_about_label(places[labels] + draw(6, 300, 32), labels, slices=32)
    assert found.detected
    assert not found.unreliable
    assert found.value == pytest.approx(found.known, rel=0.3)
    assert found.value < math.log(4)


def test_the_class_control_knows_its_truth():
    # Two classes ten spreads apart tell log 2 in the one direction there is.
    labels = torch.arange(200) % 2
    found = sliced_about_label(10.0 * labels[:, None] + draw(7, 200, 1), labels, slices=2)
    assert found.known == pytest.approx(math.log(2), abs=0.01)
    assert found.value == pytest.approx(math.log(2), abs=0.05)


def test_what_x_tells_of_itself_is_the_most():
    x, y = related(200, 8, 0.7)
    assert sliced_between(x, x, slices=32).value > sliced_between(x, y, slices=32).value


def test_the_same_seed_gives_the_same_numbers():
    x, y = related(100, 4, 0.7)
    assert sliced_between(x, y, slices=8) == sliced_between(x, y, slices=8)
    assert sliced_between(x, y, slices=8) != sliced_between(x, y, slices=8, seed=1)


def test_constant_states_tell_nothing_and_do_not_fail():
    found = sliced_between(draw(0, 80, 3), torch.zeros(80, 3), slices=4)
    assert not found.detected


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: sliced_between(draw(0, 49, 2), draw(1, 49, 2)), r"50 examples.*\[49, 2\]"),
        (lambda: sliced_between(draw(0, 60, 2), draw(1, 61, 2)), "60 and 61"),
        (lambda: sliced_between(draw(0, 60, 2) / 0, draw(1, 60, 2)), "finite"),
        (lambda: sliced_between(draw(0, 60, 2), draw(1, 60, 2), slices=0), "slices"),
        (lambda: sliced_between(draw(0, 60, 2), draw(1, 60, 2), k=0), "`k`"),
        (lambda: sliced_about_label(draw(0, 60, 2), torch.zeros(59)), r"60 examples, got \[59\]"),
    ],
)
def test_wrong_calls_are_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()
