import math

import numpy as np
import pytest
import torch

from depthpde.measures import estimators
from depthpde.measures.information import (
    TOLERANCE,
    compress,
    gaussian_information,
    information_about_label,
    information_between,
    information_plane,
)
from depthpde.seeds import generator


def draw(*shape: int, name: str = "information") -> torch.Tensor:
    return torch.randn(*shape, generator=generator(0, name), dtype=torch.float64)


def correlated(n: int, dims: int, rho: float) -> tuple[torch.Tensor, torch.Tensor]:
    x = draw(n, dims, name="x")
    return x, rho * x + math.sqrt(1 - rho**2) * draw(n, dims, name="noise")


KNOWN = [(dims, rho) for dims in (1, 2, 3) for rho in (0.0, 0.3, 0.6)]


@pytest.mark.parametrize(("dims", "rho"), [*KNOWN, (1, 0.9), (1, 0.99), (2, 0.9)])
def test_neighbours_recover_the_information_of_gaussians(dims, rho):
    x, y = correlated(3000, dims, rho)
    got = estimators.by_neighbours(x.numpy(), y.numpy())
    wanted = gaussian_information(rho, dims)
    assert got == pytest.approx(wanted, abs=0.05 + 0.06 * wanted)


def test_neighbours_fall_short_of_much_information_in_three_dimensions_and_say_so():
    x, y = correlated(3000, 3, 0.99)
    found = information_between(x, y, dims=3)
    assert found.value < 0.85 * gaussian_information(0.99, 3)
    assert "where there are" in found.unreliable


@pytest.mark.parametrize("rho", [0.0, 0.6, 0.9])
def test_bins_recover_the_information_of_one_dimensional_gaussians(rho):
    x, y = correlated(20_000, 1, rho)
    got = estimators.by_bins(estimators.cells(x.numpy(), 24), estimators.cells(y.numpy(), 24))
    assert got == pytest.approx(gaussian_information(rho, 1), abs=0.04)


@pytest.mark.parametrize("classes", [2, 4, 10])
def test_neighbours_recover_the_information_about_a_label(classes):
    random = np.random.default_rng(0)
    labels = random.integers(classes, size=3000)
    points = np.stack((labels + 2 * random.random(3000), random.random(3000)), axis=1)
    wanted = math.log(classes) - (classes - 1) * math.log(2) / classes
    assert estimators.by_neighbours_of_label(points, labels) == pytest.approx(wanted, abs=0.1)


def test_a_label_seen_once_is_left_out():
    points, labels = np.arange(60.0)[:, None], np.array([0] * 30 + [1] * 29 + [2])
    assert estimators.by_neighbours_of_label(points, labels) == pytest.approx(math.log(2), abs=0.1)


def test_information_does_not_change_when_a_side_is_stretched():
    x, y = (each.numpy() for each in correlated(500, 2, 0.8))
    a = estimators.by_neighbours(x, y)
    assert estimators.by_neighbours(1e6 * x + 3, 1e-6 * y) == pytest.approx(a, abs=1e-3)


def test_equal_numbers_do_not_break_the_neighbours():
    x = np.repeat(np.arange(10.0), 20)[:, None]
    assert math.isfinite(estimators.by_neighbours(x, x))
    constant = np.zeros((200, 1))
    assert abs(estimators.by_neighbours(constant, x)) < 0.3


def test_cells_hold_equal_shares():
    numbers = estimators.cells(draw(1000, 2).numpy(), 4)
    assert len(np.unique(numbers)) == 16
    first = numbers % 4
    assert np.unique(first, return_counts=True)[1].tolist() == [250] * 4


def test_a_good_sample_passes_all_checks():
    x, t = correlated(800, 2, 0.8)
    found = information_between(x, t)
    assert found.unreliable == ""
    assert found.value == pytest.approx(gaussian_information(0.8, 2), abs=TOLERANCE)
    assert abs(found.chance) < 0.1
    assert (found.examples, found.dims, found.estimator) == (800, 2, "neighbours")


def test_more_information_than_the_sample_can_show_is_called_unreliable():
    x = draw(100, 6)
    found = information_between(x, x, dims=6)
    assert "reads" in found.unreliable


def test_too_many_bins_for_the_sample_are_called_unreliable():
    x, t = correlated(100, 2, 0.5)
    found = information_between(x, t, estimator="bins", bins=16)
    assert "where there are none" in found.unreliable


def test_labels_that_are_told_apart_give_their_entropy():
    labels = torch.arange(400) % 4
    apart = draw(400, 3) + 50 * torch.nn.functional.one_hot(labels, 4)[:, :3]
    for estimator in ("neighbours", "bins"):
        found = information_about_label(apart, labels, estimator=estimator, dims=3, bins=4)
        assert found.value == pytest.approx(math.log(4), abs=0.2), estimator


def test_noise_tells_nothing_of_the_label():
    found = information_about_label(draw(400, 3), torch.arange(400) % 4)
    assert abs(found.value) < 0.15
    assert found.unreliable == ""


def test_the_plane_shows_a_layer_that_forgets():
    labels = torch.arange(600) % 2
    x = draw(600, 4)
    x[:, 0] = 4.0 * labels + 0.5 * x[:, 0]
    kept, lost = x + 0.01 * draw(600, 4, name="a"), 1e-3 * x + draw(600, 4, name="b")
    points = information_plane([x, kept, lost], labels, slices=16)
    assert [each.layer for each in points] == [0, 1, 2]
    assert points[1].about_label.value > 0.5
    assert abs(points[2].about_label.value) < 0.15
    assert points[1].about_input.value > points[2].about_input.value + 1.0
    sliced = [each.sliced_label for each in points]
    assert [each.detected for each in sliced] == [True, True, False]
    assert not any(each.unreliable for each in sliced)
    about_input = [each.sliced_input for each in points]
    assert about_input[1].value == pytest.approx(about_input[0].value, rel=0.1)
    assert about_input[1].detected
    assert not about_input[2].detected


def test_a_plane_without_slices_has_no_sliced_estimates():
    point = information_plane([draw(60, 2)], torch.arange(60) % 2, slices=0)[0]
    assert point.sliced_input is point.sliced_label is None


def test_compression_keeps_the_leading_components():
    u = draw(200, 5) * torch.tensor([10.0, 5.0, 0.1, 0.1, 0.1], dtype=torch.float64)
    kept = compress(u, 2)
    assert kept.shape == (200, 2)
    share = (kept**2).sum() / float((u - u.mean(0)).square().sum())
    assert share > 0.99
    assert compress(torch.ones(60, 5), 2).shape == (60, 1), "a constant has no components"


def test_refuses_too_few_examples():
    with pytest.raises(ValueError, match=r"`t`.*least 50 examples"):
        information_about_label(draw(20, 3), torch.arange(20) % 2)


def test_refuses_numbers_that_are_none():
    t = draw(60, 3)
    t[0, 0] = math.nan
    with pytest.raises(ValueError, match=r"`t`.*got NaN or infinity"):
        information_about_label(t, torch.arange(60) % 2)
