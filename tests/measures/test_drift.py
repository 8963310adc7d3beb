import pytest
import torch

from depthpde.measures import drift

MEASURES = (drift.cosine, drift.centred_cosine, drift.linear_cka, drift.displacement)


def fields(generator, *shape):
    return [torch.randn(shape, generator=generator, dtype=torch.float64) for _ in range(2)]


def test_cosine_is_one_with_itself_and_minus_one_with_its_opposite(generator):
    u, _ = fields(generator, 3, 5, 4)
    torch.testing.assert_close(drift.cosine(u, 7 * u), torch.ones(3, dtype=torch.float64))
    torch.testing.assert_close(drift.cosine(u, -u), -torch.ones(3, dtype=torch.float64))


def test_cosine_equals_that_of_torch_token_by_token(generator):
    u, v = fields(generator, 2, 6, 5)
    wanted = torch.nn.functional.cosine_similarity(u, v, dim=2).mean(dim=1)
    torch.testing.assert_close(drift.cosine(u, v), wanted)


def test_a_shared_mean_raises_the_plain_cosine_and_not_the_centred_one(generator):
    u, v = fields(generator, 2, 400, 16)
    u, v = u + 10, v + 10
    assert drift.cosine(u, v).min() > 0.97
    assert drift.centred_cosine(u, v).abs().max() < 0.1


def test_cka_is_blind_to_a_rotation_and_a_gain_and_sees_another_geometry(generator):
    u, v = fields(generator, 2, 200, 8)
    q, _ = torch.linalg.qr(torch.randn(8, 8, generator=generator, dtype=torch.float64))
    assert drift.linear_cka(u, 3 * u @ q + 1).item() == pytest.approx(1.0, abs=1e-12)
    assert drift.linear_cka(u, v) < 0.1


def test_cka_compares_fields_of_different_width(generator):
    u = fields(generator, 2, 50, 8)[0]
    wide = torch.cat((u, torch.zeros_like(u)), dim=2)
    assert drift.linear_cka(u, wide).item() == pytest.approx(1.0, abs=1e-12)


def test_displacement_is_the_relative_step(generator):
    u, _ = fields(generator, 2, 5, 4)
    step = torch.full((2,), 0.5, dtype=torch.float64)
    torch.testing.assert_close(drift.displacement(u, 1.5 * u), step)


@pytest.mark.parametrize("measure", MEASURES)
def test_nothing_at_a_padded_site_changes_a_result_and_cutting_it_off_gives_the_same(
    measure, generator
):
    u, v = fields(generator, 2, 7, 4)
    mask = torch.arange(7) < torch.tensor([[5], [5]])
    cut = measure(u[:, :5], v[:, :5])
    for junk in (0.0, 1e9, torch.nan, torch.inf):
        filled = [torch.where(mask[..., None], each, junk) for each in (u, v)]
        torch.testing.assert_close(measure(*filled, mask), cut, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("measure", [drift.cosine, drift.centred_cosine, drift.displacement])
def test_a_sequence_of_padding_alone_is_nan_and_the_others_are_not(measure, generator):
    u, v = fields(generator, 2, 4, 3)
    mask = torch.tensor([[True] * 4, [False] * 4])
    found = measure(u, v, mask)
    assert found[0].isfinite()
    assert found[1].isnan()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_constant_field_has_no_centred_direction(dtype):
    u = torch.full((2, 9, 3), 0.1, dtype=dtype)
    assert drift.centred_cosine(u, u).isnan().all()
    assert drift.linear_cka(u, u).isnan()
    assert drift.cosine(u, u).allclose(torch.ones(2, dtype=dtype))


def test_half_precision_is_measured_in_single(generator):
    u, v = (each.half() for each in fields(generator, 2, 5, 4))
    assert all(measure(u, v).dtype is torch.float32 for measure in MEASURES)


def test_a_walk_is_compared_with_its_start_and_step_by_step(generator):
    u, _ = fields(generator, 2, 5, 4)
    first = drift.against_first(drift.displacement, [u, 2 * u, 3 * u])
    steps = drift.between_layers(drift.displacement, [u, 2 * u, 3 * u])
    assert [round(float(each[0]), 6) for each in first] == [0.0, 1.0, 2.0]
    assert [round(float(each[0]), 6) for each in steps] == [1.0, 0.5]


@pytest.mark.parametrize("measure", [drift.cosine, drift.centred_cosine, drift.displacement])
def test_refuses_fields_of_two_shapes(measure):
    with pytest.raises(ValueError, match=r"`v`.*of `u`, \[1, 2, 3\]"):
        measure(torch.zeros(1, 2, 3), torch.zeros(1, 2, 4))


def test_refuses_cka_of_different_sites():
    with pytest.raises(ValueError, match=r"`v`.*of `u`, \[1, 2\]"):
        drift.linear_cka(torch.zeros(1, 2, 3), torch.zeros(1, 3, 3))


@pytest.mark.parametrize("dim", [5, 50])
def test_a_profile_of_cka_is_that_of_every_pair(dim, generator):
    fields = [torch.randn(2, 6, dim, generator=generator, dtype=torch.float64) for _ in range(3)]
    mask = torch.ones(2, 6, dtype=torch.bool)
    mask[0, 4:] = False
    first, step = drift.cka_profile(fields, mask)
    wanted = drift.against_first(drift.linear_cka, fields, mask)
    torch.testing.assert_close(torch.stack(first), torch.stack(wanted))
    wanted = drift.between_layers(drift.linear_cka, fields, mask)
    torch.testing.assert_close(torch.stack(step), torch.stack(wanted))


def test_cka_between_tokens_is_that_between_features(generator):
    u, v = (torch.randn(1, 6, 9, generator=generator, dtype=torch.float64) for _ in range(2))
    U, V = (each[0] - each[0].mean(dim=0) for each in (u, v))
    wanted = (V.T @ U).square().sum() / ((U.T @ U).norm() * (V.T @ V).norm())
    assert drift.linear_cka(u, v).item() == pytest.approx(wanted.item())
