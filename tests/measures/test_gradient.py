import pytest
import torch

from depthpde.measures import gradient


def test_norm_is_that_of_all_gradients_as_one_vector(generator):
    parts = [torch.randn(shape, generator=generator) for shape in ((3, 4), (5,), ())]
    whole = torch.cat([each.flatten() for each in parts]).double()
    assert gradient.gradient_norm(parts) == pytest.approx(float(whole.norm()))
    assert gradient.gradient_norm([]) == 0.0


def test_large_gradients_do_not_overflow():
    assert gradient.gradient_norm([torch.full((4,), 1e30)]) == pytest.approx(2e30)


def test_groups_are_measured_apart_and_a_missing_gradient_is_zero():
    gradients = {"0.w": torch.tensor([3.0]), "0.b": torch.tensor([4.0]), "1.w": None}
    found = gradient.norms_by_group(gradients, lambda name: name.split(".")[0])
    assert found == {"0": 5.0, "1": 0.0}


def test_amplification_of_a_chain_of_gains_is_their_product(generator):
    u = torch.randn(2, 3, 4, generator=generator, dtype=torch.float64, requires_grad=True)
    fields = [u]
    for gain in (2.0, 5.0, 0.1):
        fields.append(gain * fields[-1])
    grads = torch.autograd.grad(fields[-1].square().sum(), fields)
    found = gradient.amplification(grads)
    wanted = torch.tensor([1.0, 0.5, 0.1, 1.0], dtype=torch.float64)
    torch.testing.assert_close(found, wanted)


def test_gradients_at_padding_do_not_count(generator):
    g = torch.randn(2, 4, 3, generator=generator, dtype=torch.float64)
    mask = torch.tensor([[True, True, True, False], [True, False, False, False]])
    clean, dirty = (torch.where(mask[..., None], g, junk) for junk in (0.0, torch.nan))
    found = gradient.stream_norms([dirty, 2 * dirty], mask)
    torch.testing.assert_close(found, torch.stack([clean.norm(), 2 * clean.norm()]))


def test_no_gradient_at_the_end_has_no_amplification():
    zero = torch.zeros(1, 2, 3)
    assert gradient.amplification([zero + 1, zero]).isnan().all()


def test_a_large_gradient_is_measured_in_parts():
    draw = torch.Generator().manual_seed(0)
    weight = torch.randn(3, 2**20 // 2, generator=draw)
    assert float(gradient.precise_norm(weight)) == pytest.approx(float(weight.double().norm()))
    assert float(gradient.precise_norm(1e30 * weight)) == pytest.approx(
        1e30 * float(weight.double().norm())
    )


def test_a_sparse_gradient_counts_what_it_holds():
    rows = torch.tensor([[1, 1, 4]])
    sparse = torch.sparse_coo_tensor(
        rows, torch.tensor([[3.0], [0.0], [4.0]]), (9, 1), check_invariants=True
    )
    assert float(gradient.precise_norm(sparse)) == 5.0
