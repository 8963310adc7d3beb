import math

import pytest
import torch

from depthpde.measures import attention
from depthpde.operators.interaction import attention_weights, sinkhorn


def kernel(generator, *shape, gain=1.0):
    return torch.softmax(
        gain * torch.randn(shape, generator=generator, dtype=torch.float64), dim=-1
    )


def test_entropy_is_one_for_uniform_rows_and_zero_for_one_site():
    uniform = torch.full((1, 2, 5, 5), 0.2)
    torch.testing.assert_close(attention.entropy(uniform), torch.ones(1, 2))
    torch.testing.assert_close(attention.entropy(torch.eye(5)[None, None]), torch.zeros(1, 1))


def test_entropy_of_a_causal_kernel_counts_what_each_site_may_see():
    weights = torch.ones(6, 6).tril()
    weights = (weights / weights.sum(dim=1, keepdim=True))[None, None]
    seen = attention.seen_pairs(6, None, causal=True)
    torch.testing.assert_close(attention.entropy(weights, seen), torch.ones(1, 1))


def test_padding_changes_nothing(generator):
    q, k = torch.randn(2, 2, 3, 7, 4, generator=generator, dtype=torch.float64)
    mask = torch.arange(7) < torch.tensor([[5], [5]])
    padded = attention_weights(q, k, valid_mask=mask)
    cut = attention_weights(q[:, :, :5], k[:, :, :5])
    seen = attention.seen_pairs(7, mask, causal=False)
    torch.testing.assert_close(attention.entropy(padded, seen), attention.entropy(cut))
    gap = attention.doubly_stochastic_gap(padded, mask)
    torch.testing.assert_close(gap, attention.doubly_stochastic_gap(cut))
    other, other_cut = padded.roll(1, dims=1), cut.roll(1, dims=1)
    for compare in (attention.kl, attention.js):
        torch.testing.assert_close(compare(padded, other, seen), compare(cut, other_cut))


def test_a_sequence_of_padding_alone_is_nan():
    mask = torch.tensor([[True, True], [False, False]])
    weights = torch.full((2, 1, 2, 2), 0.5)
    found = attention.entropy(weights, attention.seen_pairs(2, mask, causal=False))
    assert found[0].item() == pytest.approx(1.0)
    assert found[1].isnan()


def test_kl_equals_its_sum_and_is_zero_with_itself(generator):
    p, q = kernel(generator, 1, 1, 3, 4), kernel(generator, 1, 1, 3, 4)
    wanted = (p * (p / q).log()).sum(dim=-1).mean()
    assert attention.kl(p, q).item() == pytest.approx(wanted.item())
    assert attention.kl(p, p).item() == pytest.approx(0.0, abs=1e-12)


def test_kl_is_infinite_where_the_second_never_looks():
    p = torch.tensor([[0.5, 0.5], [0.5, 0.5]])[None, None]
    assert attention.kl(p, torch.eye(2)[None, None]).item() == math.inf


def test_js_is_symmetric_and_one_for_kernels_that_share_nothing(generator):
    p, q = kernel(generator, 2, 3, 4, 4), kernel(generator, 2, 3, 4, 4)
    torch.testing.assert_close(attention.js(p, q), attention.js(q, p))
    one, other = torch.eye(4)[None, None], torch.eye(4).roll(1, 0)[None, None]
    assert attention.js(one, other).item() == pytest.approx(1.0)


def test_gap_is_zero_for_a_sinkhorn_kernel_and_large_for_one_site(generator):
    scores = torch.randn(1, 2, 6, 6, generator=generator, dtype=torch.float64)
    assert attention.doubly_stochastic_gap(sinkhorn(scores, iterations=200)).max() < 1e-8
    all_at_one = torch.zeros(1, 1, 6, 6)
    all_at_one[..., 0] = 1.0
    assert attention.doubly_stochastic_gap(all_at_one).item() == pytest.approx(5 / 6)


@pytest.mark.parametrize("compare", [attention.kl, attention.js])
def test_refuses_kernels_of_two_shapes(compare):
    with pytest.raises(ValueError, match=r"`second`.*of `first`"):
        compare(torch.zeros(1, 2, 3, 3), torch.zeros(1, 1, 3, 3))
