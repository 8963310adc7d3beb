import math

import pytest
import torch
from torch.linalg import svdvals

from depthpde.layers.controls import Blur
from depthpde.layers.diffusion import Diffusion
from depthpde.measures import spectrum


def matrices(generator, *shapes):
    return [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]


def test_qk_spectrum_equals_that_of_the_full_product(generator):
    q, k = matrices(generator, (8, 6), (8, 6))
    found = spectrum.qk_spectrum(q, k, 4)
    for h in range(4):
        full = q[2 * h : 2 * h + 2].mT @ k[2 * h : 2 * h + 2] / 2**0.5
        torch.testing.assert_close(found[h], svdvals(full)[:2])


def test_heads_of_a_group_share_their_keys_and_values(generator):
    q, k, o = matrices(generator, (8, 6), (4, 6), (6, 8))
    grouped = spectrum.qk_spectrum(q, k, 4, key_heads=2)
    repeated = k.reshape(2, 2, 6).repeat_interleave(2, 0).reshape(8, 6)
    torch.testing.assert_close(grouped, spectrum.qk_spectrum(q, repeated, 4))
    torch.testing.assert_close(
        spectrum.ov_spectrum(k, o, 4, value_heads=2), spectrum.ov_spectrum(repeated, o, 4)
    )


def test_ov_spectrum_equals_that_of_the_full_product(generator):
    v, o = matrices(generator, (6, 6), (6, 6))
    singular = spectrum.ov_spectrum(v, o, 2)
    for h in range(2):
        full = o[:, 3 * h : 3 * h + 3] @ v[3 * h : 3 * h + 3]
        torch.testing.assert_close(singular[h], svdvals(full)[:3])


@pytest.mark.parametrize(("mode", "band"), [(0, 0), (1, 1), (8, 2), (17, 3), (31, 4)])
def test_a_cosine_lies_in_its_own_band(mode, band):
    site = torch.arange(32, dtype=torch.float64)
    u = torch.cos(math.pi * mode * (site + 0.5) / 32).reshape(1, 32, 1)
    shares = spectrum.band_shares(u)
    assert shares[0, band].item() == pytest.approx(1.0)


def test_shares_sum_to_one_and_ignore_padding(generator):
    u = matrices(generator, (3, 9, 4))[0]
    mask = torch.arange(9) < torch.tensor([[9], [6], [0]])
    filled = torch.where(mask[..., None], u, torch.nan)
    shares = spectrum.band_shares(filled, mask)
    torch.testing.assert_close(shares[:2].sum(dim=1), torch.ones(2, dtype=torch.float64))
    torch.testing.assert_close(shares[1], spectrum.band_shares(u[1:2, :6])[0])
    assert shares[2].isnan().all()


def test_transfer_is_the_layers_formula_or_measured():
    omega = torch.linspace(0, math.pi, 5)
    layer = Diffusion(3, initial_ratio=0.1)
    wanted = (1 - 0.4 * torch.sin(omega / 2) ** 2)[:, None].expand(5, 3)
    torch.testing.assert_close(spectrum.transfer(layer, omega), wanted)
    assert spectrum.transfer(Blur(3), omega).shape == (5, 3)


def test_refuses_a_matrix_that_heads_do_not_divide():
    with pytest.raises(ValueError, match=r"`query`.*3.*got 8"):
        spectrum.qk_spectrum(torch.zeros(8, 6), torch.zeros(8, 6), 3)


def test_refuses_what_is_no_matrix():
    with pytest.raises(ValueError, match=r"`weight`.*\[out, in\].*got \[3\]"):
        spectrum.weight_spectrum(torch.zeros(3))


def test_the_largest_singular_value_of_a_large_matrix_is_right_to_a_thousandth():
    draw = torch.Generator().manual_seed(0)
    weight = torch.randn(400, 1200, generator=draw)
    exact = float(spectrum.weight_spectrum(weight)[0])
    found = spectrum.largest_singular_value(weight)
    assert found <= exact * (1 + 1e-6)
    assert found == pytest.approx(exact, rel=1e-3)
    small = torch.randn(30, 20, generator=draw)
    assert spectrum.largest_singular_value(small) == float(spectrum.weight_spectrum(small)[0])


def test_the_largest_singular_value_of_a_matrix_of_low_rank_is_exact():
    draw = torch.Generator().manual_seed(0)
    thin = torch.randn(600, 2, generator=draw)
    weight = thin @ torch.randn(2, 700, generator=draw)
    exact = float(spectrum.weight_spectrum(weight)[0])
    assert spectrum.largest_singular_value(weight) == pytest.approx(exact, rel=1e-5)
    assert spectrum.largest_singular_value(torch.zeros(600, 700)) == 0.0
