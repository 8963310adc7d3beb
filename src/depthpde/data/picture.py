"""Grey images for people: as a PNG file and in a terminal."""

from __future__ import annotations

import struct
import zlib

import numpy as np

from depthpde.data.writer import Array

_RAMP = " .:-=+*#%@"


def png(image: Array, *, zoom: int = 1) -> bytes:
    """Return a PNG file of grey levels [height, width], each pixel drawn ``zoom`` times larger."""
    large = np.repeat(np.repeat(image.astype(np.uint8), zoom, axis=0), zoom, axis=1)
    height, width = large.shape
    # Each row starts with a zero: no filter.
    raw = np.concatenate([np.zeros((height, 1), np.uint8), large], axis=1).tobytes()
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"".join(
        [
            b"\x89PNG\r\n\x1a\n",
            _chunk(b"IHDR", header),
            _chunk(b"IDAT", zlib.compress(raw, 9)),
            _chunk(b"IEND", b""),
        ]
    )


def in_characters(image: Array) -> str:
    """Draw grey levels with characters of rising ink, two for a pixel."""
    levels = image.astype(np.int64) * (len(_RAMP) - 1) // 255
    return "\n".join("".join(_RAMP[level] * 2 for level in row).rstrip() for row in levels)


def in_colour(image: Array) -> str:
    """Draw grey levels with half blocks and terminal colours, two rows a line."""
    even = np.vstack([image, np.zeros_like(image[:1])]) if len(image) % 2 else image
    lines = []
    for upper, lower in zip(even[::2], even[1::2], strict=True):
        cells = [
            f"\x1b[38;2;{a};{a};{a}m\x1b[48;2;{b};{b};{b}m▀"
            for a, b in zip(upper.tolist(), lower.tolist(), strict=True)
        ]
        lines.append("".join(cells) + "\x1b[0m")
    return "\n".join(lines)


def _chunk(name: bytes, content: bytes) -> bytes:
    check = zlib.crc32(name + content)
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", check)
