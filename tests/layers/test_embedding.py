import pytest
import torch

from depthpde.layers.embedding import (
    Encoding,
    PatchEmbedding,
    PixelEmbedding,
    Rotary,
    SiteEncoding,
    sinusoids,
)


def test_grey_levels_are_mapped_from_minus_one_to_one():
    layer = PixelEmbedding(256, 3, dtype=torch.float64)
    whole = layer(torch.tensor([[0, 51, 255]]))
    real = layer(torch.tensor([[-1.0, -0.6, 1.0]], dtype=torch.float64))
    torch.testing.assert_close(whole, real, rtol=0, atol=1e-14)
    assert torch.equal(layer(torch.tensor([[[0], [51], [255]]])), whole)


def test_channels_of_a_site_are_mapped_together():
    enter = PixelEmbedding(1, 8, channels=3)
    values = torch.randn(2, 5, 3)
    torch.testing.assert_close(enter(values), values @ enter.map.weight.T + enter.map.bias)
    with pytest.raises(ValueError, match=r"\[batch, length, 3\], got \[2, 5\]"):
        enter(values[..., 0])


def test_refuses_pixels_with_colours():
    with pytest.raises(ValueError, match=r"`pixels` must be \[batch, length, 1\].*got \[2, 5, 3\]"):
        PixelEmbedding(256, 4)(torch.zeros(2, 5, 3))


def test_pixels_embed_linearly_so_a_blur_of_pixels_is_a_blur_of_the_field():
    layer = PixelEmbedding(256, 3, dtype=torch.float64)
    a, b = (torch.randn(1, 4, dtype=torch.float64) for _ in range(2))
    mixed = 0.25 * layer(a) + 0.75 * layer(b)
    torch.testing.assert_close(layer(0.25 * a + 0.75 * b), mixed, rtol=0, atol=1e-14)


def test_patches_come_row_by_row_with_all_their_pixels():
    layer = PatchEmbedding(2, 3, 12, dtype=torch.float64)
    with torch.no_grad():
        layer.map.weight.copy_(torch.eye(12))
        layer.map.bias.zero_()
    images = torch.arange(2 * 3 * 4 * 6, dtype=torch.float64).reshape(2, 3, 4, 6)
    field = layer(images)
    assert field.shape == (2, 6, 12)
    wanted = images[1, :, 2:4, 2:4].permute(1, 2, 0).flatten()
    assert torch.equal(field[1, 4], wanted)


@pytest.mark.parametrize("shape", [(1, 3, 5, 4), (1, 3, 4, 5), (1, 2, 4, 4), (3, 4, 4)])
def test_refuses_images_that_patches_do_not_fit(shape):
    with pytest.raises(ValueError, match=r"`images` must be \[batch, 3, height, width\].*of 2"):
        PatchEmbedding(2, 3, 8)(torch.zeros(shape))


def test_waves_are_as_long_as_an_embedded_token_and_tell_every_site_apart():
    waves = sinusoids(200, 16)
    torch.testing.assert_close(waves.norm(dim=1), torch.ones(200), rtol=0, atol=1e-6)
    distance = torch.cdist(waves, waves) + torch.eye(200)
    assert distance.min() > 1e-2


@pytest.mark.parametrize("encoding", [Encoding.LEARNED, Encoding.SINUSOIDAL])
def test_an_encoding_is_added_from_its_first_site_on(encoding):
    layer = SiteEncoding(encoding, 6, 4)
    if encoding is Encoding.LEARNED:
        torch.nn.init.normal_(layer.sites)
    u = torch.randn(2, 3, 4)
    assert torch.equal(layer(u), u + layer.sites[:3])
    assert torch.equal(layer(u, start=2), u + layer.sites[2:5])
    assert [name for name, _ in layer.named_parameters()] == (
        ["sites"] if encoding is Encoding.LEARNED else []
    )


def test_refuses_more_sites_than_it_knows():
    with pytest.raises(ValueError, match=r"`u`.*6.*got 7"):
        SiteEncoding(Encoding.LEARNED, 6, 4)(torch.zeros(1, 7, 4))


def test_refuses_an_encoding_that_is_not_added():
    with pytest.raises(ValueError, match="`encoding` must be learned or sinusoidal"):
        SiteEncoding(Encoding.ROTARY, 6, 4)


def test_refuses_odd_features_for_waves_and_rotations():
    with pytest.raises(ValueError, match=r"`dim`.*got 3"):
        sinusoids(4, 3)
    with pytest.raises(ValueError, match=r"`head_dim`.*got 5"):
        Rotary(5)


def test_a_rotation_keeps_lengths_and_sees_only_differences_of_sites():
    rotary = Rotary(8)
    q, k = (torch.randn(8, dtype=torch.float64).expand(1, 1, 12, 8) for _ in range(2))
    turned_q, turned_k = rotary(q), rotary(k)
    torch.testing.assert_close(turned_q.norm(dim=-1), q.norm(dim=-1), rtol=0, atol=1e-12)
    scores = (turned_q @ turned_k.mT)[0, 0]
    for offset in range(-5, 6):
        diagonal = scores.diagonal(offset)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal), rtol=0, atol=1e-11)
    assert not torch.allclose(scores[0, 1], scores[1, 0])


def test_a_rotation_can_be_taken_up_at_any_site():
    u = torch.randn(1, 2, 9, 4, dtype=torch.float64)
    rotary = Rotary(4)
    assert torch.equal(rotary(u)[..., 5:, :], rotary(u[..., 5:, :], start=5))
