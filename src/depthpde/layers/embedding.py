"""From tokens, pixels or patches to a field, and positional embeddings."""

from __future__ import annotations

from enum import StrEnum

import torch
from torch import Tensor, nn

from depthpde.errors import check_positive, check_precision, check_tensor
from depthpde.shapes import Field


class InputKind(StrEnum):
    """What comes in."""

    TOKEN = "token"
    """Whole numbers, each a row of a learned table."""
    LINEAR = "linear"
    """Grey levels or real numbers, those of a site mapped linearly."""
    PATCH = "patch"
    """Images, cut into square patches, each mapped linearly."""


class Encoding(StrEnum):
    """How a site knows its index."""

    LEARNED = "learned"
    """A learned vector for each site, added."""
    SINUSOIDAL = "sinusoidal"
    """Fixed waves of geometric wavelengths, added."""
    ROTARY = "rotary"
    """Queries and keys are turned by an angle that grows with the site."""
    NONE = "none"
    """Not at all."""


class PixelEmbedding(nn.Module):
    """Map the grey level or the channels of each site linearly to a vector.

        u(x) = W g(x) + b,    g = 2 p / (levels − 1) − 1  for whole numbers p, else p itself

    Linear, so diffusion right after it is a blur of the signal itself. Learned: W and b.

    Args:
        levels: Number of grey levels; 256 for bytes.
        dim: Features of the field.
        channels: Numbers at each site; more than one for series of several channels.
        device: Where the parameters live.
        dtype: Their precision.
    """

    def __init__(
        self,
        levels: int,
        dim: int,
        channels: int = 1,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.levels = check_positive("levels", levels)
        self.channels = check_positive("channels", channels)
        self.map = nn.Linear(channels, check_positive("dim", dim), device=device, dtype=dtype)

    def forward(self, pixels: Tensor) -> Field:
        """Return the field of pixels, whole grey levels or real numbers.

        Args:
            pixels: [batch, length, channels]; one channel may be left out.
        """
        if pixels.ndim == 2 and self.channels == 1:
            pixels = pixels[..., None]
        if pixels.ndim != 3 or pixels.shape[2] != self.channels:
            raise ValueError(
                f"`pixels` must be [batch, length, {self.channels}], got {list(pixels.shape)}; "
                "lay images out row by row, and name the channels in the config"
            )
        if not pixels.is_floating_point():
            pixels = pixels.to(self.map.weight.dtype) * (2.0 / max(self.levels - 1, 1)) - 1.0
        return self.map(pixels)


class PatchEmbedding(nn.Module):
    """Cut an image into square patches and map each linearly to a vector.

        u(x) = W · patch(x) + b,    patches row by row

    Learned: W and b.

    Args:
        patch: Side of a patch in pixels.
        channels: Channels of the image.
        dim: Features of the field.
        device: Where the parameters live.
        dtype: Their precision.
    """

    def __init__(
        self,
        patch: int,
        channels: int,
        dim: int,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.patch = check_positive("patch", patch)
        self.channels = check_positive("channels", channels)
        check_positive("dim", dim)
        self.map = nn.Linear(patch * patch * channels, dim, device=device, dtype=dtype)

    def forward(self, images: Tensor) -> Field:
        """Return the field [batch, patches, dim] of images [batch, channels, height, width]."""
        side = self.patch
        check_tensor("images", images)
        fits = images.ndim == 4 and images.shape[1] == self.channels
        if not fits or images.shape[2] % side or images.shape[3] % side:
            raise ValueError(
                f"`images` must be [batch, {self.channels}, height, width] with sides that are "
                f"multiples of {side}, got {list(images.shape)}; resize or pad the images"
            )
        check_precision("images", images, self.map.weight)
        batch, channels, height, width = images.shape
        cut = images.reshape(batch, channels, height // side, side, width // side, side)
        return self.map(cut.permute(0, 2, 4, 3, 5, 1).flatten(3).flatten(1, 2))


class SiteEncoding(nn.Module):
    """Add the positional embedding to the field.

        u(x) ← u(x) + p(x)

    Learned: p for every site up to `length`. Sinusoidal: nothing is learned,
    p = √(2/dim) (sin(x ω), cos(x ω)) with ω from 1 down to 1/10,000, so that p is as long as an
    embedded token.

    Args:
        encoding: Learned or sinusoidal.
        length: Number of sites.
        dim: Features of the field; even for waves.
        device: Where the parameters live.
        dtype: Their precision.
    """

    sites: Tensor

    def __init__(
        self,
        encoding: Encoding,
        length: int,
        dim: int,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        check_positive("length", length)
        check_positive("dim", dim)
        self.encoding = encoding
        if encoding is Encoding.LEARNED:
            self.sites = nn.Parameter(torch.zeros(length, dim, device=device, dtype=dtype))
        elif encoding is Encoding.SINUSOIDAL:
            waves = sinusoids(length, dim).to(device=device, dtype=dtype or torch.float32)
            self.register_buffer("sites", waves, persistent=False)
        else:
            raise ValueError(
                f"`encoding` must be learned or sinusoidal to be added, got {encoding.value!r}"
            )

    def forward(self, u: Field, *, start: int = 0) -> Field:
        """Return the field with its positions added; `start` is the index of the first."""
        end = start + u.shape[1]
        if end > self.sites.shape[0]:
            raise ValueError(
                f"`u` must have at most {self.sites.shape[0]} sites, got {end}; "
                "build the model with a larger length, or cut the input"
            )
        return u + self.sites[start:end].to(u.dtype)


class Rotary(nn.Module):
    """Turn pairs of features by an angle that grows with the site.

        (a, b) ← (a cos xω − b sin xω, a sin xω + b cos xω)

    A rotation: lengths are kept, and ⟨q(x), k(y)⟩ depends on x − y only. Learns nothing.

    Args:
        head_dim: Features of a head; even.
    """

    def __init__(self, head_dim: int) -> None:
        super().__init__()
        if check_positive("head_dim", head_dim) % 2:
            raise ValueError(
                f"`head_dim` must be even for rotary encoding, got {head_dim}; "
                "change dim or heads so that dim / heads is even"
            )
        self.head_dim = head_dim

    def forward(self, u: Tensor, *, start: int = 0) -> Tensor:
        """Return queries or keys [..., length, head_dim] turned by their sites."""
        half = self.head_dim // 2
        angles = _angles(start, u.shape[-2], half, u.device)
        cos, sin = angles.cos().to(u.dtype), angles.sin().to(u.dtype)
        a, b = u[..., :half], u[..., half:]
        return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)


def sinusoids(length: int, dim: int) -> Tensor:
    """Return fixed waves, [length, dim], every site of unit length.

    p(x) = √(2/dim) (sin(x ω_0), …, cos(x ω_0), …)
    """
    if dim % 2:
        raise ValueError(f"`dim` must be even for sinusoidal encoding, got {dim}; use {dim + 1}")
    angles = _angles(0, length, dim // 2, None)
    return (2.0 / dim) ** 0.5 * torch.cat((angles.sin(), angles.cos()), dim=-1).float()


def _angles(start: int, length: int, waves: int, device: torch.device | None) -> Tensor:
    # Float64: at site 16,384 a float32 angle is off by a thousandth of a turn.
    sites = torch.arange(start, start + length, dtype=torch.float64, device=device)
    steps = torch.arange(waves, dtype=torch.float64, device=device)
    return sites[:, None] * 10_000.0 ** (-steps / waves)
