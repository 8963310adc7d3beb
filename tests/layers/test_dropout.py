import pytest
import torch
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from depthpde.layers.dropout import dropout, supports


def drawn(u, share, seed=0):
    torch.manual_seed(seed)
    return dropout(u, share)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_each_number_is_zero_or_scaled_and_the_share_is_that_of_torch(share):
    u = torch.randn(400, 500)
    out = drawn(u, share)
    kept = out != 0
    torch.testing.assert_close(out[kept], u[kept] / (1 - share), rtol=2e-7, atol=0)
    deviation = (share * (1 - share) / u.numel()) ** 0.5
    for fallen in (~kept, F.dropout(torch.ones_like(u), share) == 0):
        assert abs(float(fallen.double().mean()) - share) < 4.5 * deviation


def test_numbers_fall_independently_along_every_axis_and_between_calls():
    ones = torch.ones(512, 512, dtype=torch.float64)
    first, second = ((drawn(ones, 0.5, seed) != 0).double() - 0.5 for seed in (0, 1))
    bound = 4.5 / 512  # of a mean of 512² products of ±½, times 4: 4.5 standard deviations
    for lag in (1, 2, 8, 64, 256):
        assert 4 * abs(float((first[:, lag:] * first[:, :-lag]).mean())) < bound * 512 / (512 - lag)
        assert 4 * abs(float((first[lag:] * first[:-lag]).mean())) < bound * 512 / (512 - lag)
    assert 4 * abs(float((first * second).mean())) < bound
    # Neither seed is the other's stream shifted by a few sites.
    a, b = first.flatten(), second.flatten()
    shifts = [float((a[n:] * b[: len(b) - n]).mean()) for n in range(1, 200)]
    assert 4 * max(map(abs, shifts)) < 1.2 * bound


def test_torchs_seed_decides_the_result_and_torchs_stream_goes_on():
    u = torch.randn(64, 64)
    assert torch.equal(drawn(u, 0.3), drawn(u, 0.3))
    assert not torch.equal(drawn(u, 0.3), drawn(u, 0.3, seed=1))
    torch.manual_seed(0)
    assert not torch.equal(dropout(u, 0.3), dropout(u, 0.3))


def test_the_number_of_threads_changes_nothing():
    u, threads = torch.randn(100, 1000), torch.get_num_threads()
    one = drawn(u, 0.2)
    try:
        torch.set_num_threads(2)
        assert torch.equal(one, drawn(u, 0.2))
    finally:
        torch.set_num_threads(threads)


def test_the_map_is_linear_and_its_own_adjoint():
    u, v = torch.randn(2, 7, 5, 3, dtype=torch.float64)
    torch.testing.assert_close(
        (drawn(u, 0.4) * v).sum(), (u * drawn(v, 0.4)).sum(), rtol=1e-14, atol=0
    )


def test_first_and_second_gradients_are_those_of_finite_differences():
    u = torch.randn(4, 6, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda u: drawn(u, 0.5), u)
    assert torch.autograd.gradgradcheck(lambda u: drawn(u.square(), 0.5), u)


def test_strided_fields_keep_their_own_entries():
    u = torch.arange(1.0, 61.0).reshape(3, 4, 5).transpose(0, 2)
    out = drawn(u, 0.5)
    assert torch.equal(out[out != 0], 2 * u[out != 0])


def test_nothing_is_drawn_where_nothing_falls():
    torch.manual_seed(0)
    before, u = torch.get_rng_state(), torch.ones(3)
    assert dropout(u, 0.0) is u
    assert torch.equal(before, torch.get_rng_state())
    assert torch.equal(dropout(u, 1.0), torch.zeros(3))


def test_transforms_and_watchers_are_given_torchs_own():
    u = torch.randn(8, 8)
    same = torch.func.vmap(lambda row: dropout(row, 0.5), randomness="different")(u)
    assert set((same / u).round(decimals=3).unique().tolist()) == {0.0, 2.0}
    out, tangent = torch.func.jvp(lambda x: drawn(x, 0.5), (u,), (torch.ones_like(u),))
    assert torch.equal(tangent, torch.where(out != 0, 2.0, 0.0))
    with FlopCounterMode(display=False):
        assert not supports(u)
    assert supports(u)
    assert not supports(u.half())
    assert not supports(u.to("meta"))
    program = torch.export.export(_Drop(), (u,), strict=False)
    assert set((program.module()(u) / u).round(decimals=3).unique().tolist()) <= {0.0, 2.0}


class _Drop(torch.nn.Module):
    def forward(self, u):
        return dropout(u, 0.5)
