import pytest
import torch

from depthpde.measures import rank
from depthpde.measures.tokens import real_tokens

MEASURES = (rank.rank_residual, rank.effective_rank, rank.token_cosine, rank.cluster_count)


def field(generator, *shape):
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def test_residual_is_zero_for_equal_tokens_and_one_without_a_mean(generator):
    token = field(generator, 1, 1, 6)
    assert rank.rank_residual(token.expand(2, 5, 6)).max() < 1e-15
    u = field(generator, 2, 5, 6)
    centred = u - u.mean(dim=1, keepdim=True)
    torch.testing.assert_close(rank.rank_residual(centred), torch.ones(2, dtype=torch.float64))


def test_residual_equals_its_matrix_formula(generator):
    u = field(generator, 1, 7, 4)
    ones = torch.ones(7, 7, dtype=torch.float64) / 7
    wanted = torch.linalg.norm(u[0] - ones @ u[0]) / torch.linalg.norm(u[0])
    torch.testing.assert_close(rank.rank_residual(u)[0], wanted)


@pytest.mark.parametrize("k", [1, 2, 5])
def test_effective_rank_counts_equal_orthogonal_directions(k):
    u = torch.zeros(1, 8, 6, dtype=torch.float64)
    for i in range(k):
        u[0, i, i] = 3.0
    assert rank.effective_rank(u).item() == pytest.approx(k)


def test_effective_rank_of_a_batch_is_that_of_its_tokens_in_one_sequence(generator):
    u = field(generator, 3, 4, 16)
    assert rank.effective_rank(u).max() <= 4
    assert rank.effective_rank(real_tokens(u, None)[None]).item() > 8


def test_token_cosine_equals_the_mean_over_all_pairs(generator):
    u = field(generator, 1, 6, 4)
    unit = torch.nn.functional.normalize(u[0], dim=1)
    pairs = [float(unit[i] @ unit[j]) for i in range(6) for j in range(6) if i != j]
    assert rank.token_cosine(u).item() == pytest.approx(sum(pairs) / 30)


def test_clusters_are_counted_and_collapse_to_one(generator):
    centres = torch.eye(5, dtype=torch.float64)[:3]
    u = centres.repeat_interleave(4, dim=0)[None] + 0.01 * field(generator, 1, 12, 5)
    assert rank.cluster_count(u).item() == 3
    assert rank.cluster_count(u, cosine=-1.0).item() == 1
    assert rank.cluster_count(u, cosine=1.0).item() == 12


def test_equal_tokens_are_one_cluster_in_single_precision(generator):
    u = torch.randn(1, 1, 33, generator=generator).expand(1, 8, 33)
    assert rank.cluster_count(u, cosine=1.0).item() == 1


@pytest.mark.parametrize("measure", MEASURES)
def test_nothing_at_a_padded_site_changes_a_result_and_cutting_it_off_gives_the_same(
    measure, generator
):
    u = field(generator, 2, 7, 4)
    mask = torch.arange(7) < torch.tensor([[5], [5]])
    cut = measure(u[:, :5])
    for junk in (0.0, 1e9, torch.nan, torch.inf):
        filled = torch.where(mask[..., None], u, junk)
        torch.testing.assert_close(measure(filled, mask), cut, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("measure", MEASURES)
def test_a_sequence_of_padding_alone_is_nan(measure, generator):
    mask = torch.tensor([[True] * 4, [False] * 4])
    found = measure(field(generator, 2, 4, 3), mask)
    assert found[0].isfinite()
    assert found[1].isnan()


def test_the_zero_field_is_collapsed():
    u = torch.zeros(1, 4, 3)
    assert rank.rank_residual(u).item() == 0
    assert rank.effective_rank(u).item() == 0
    assert rank.token_cosine(u).isnan().all()


def test_one_token_has_no_pairs(generator):
    assert rank.token_cosine(field(generator, 1, 1, 3)).isnan().all()


def test_a_field_that_blew_up_has_no_rank():
    u = torch.full((1, 3, 3), torch.inf)
    assert rank.effective_rank(u).isnan().all()


def test_refuses_a_cosine_that_is_none():
    with pytest.raises(ValueError, match=r"`cosine`.*\[-1, 1\].*got 2"):
        rank.cluster_count(torch.zeros(1, 2, 2), cosine=2.0)
