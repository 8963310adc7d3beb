import io

import numpy as np
import pytest

from depthpde.data.picture import in_characters, in_colour, png


@pytest.mark.parametrize("zoom", [1, 3])
def test_a_png_holds_the_pixels(zoom: int) -> None:
    image = pytest.importorskip("PIL.Image")
    grey = np.arange(35, dtype=np.uint8).reshape(5, 7) * 7
    read = np.asarray(image.open(io.BytesIO(png(grey, zoom=zoom))))
    assert (read == np.kron(grey, np.ones((zoom, zoom), dtype=np.uint8))).all()


def test_characters_rise_with_the_grey_level() -> None:
    drawn = in_characters(np.array([[0, 128, 255], [255, 0, 0]], dtype=np.uint8))
    assert drawn == "  ==@@\n@@"


def test_colours_put_two_rows_on_a_line() -> None:
    drawn = in_colour(np.array([[0, 9], [255, 1], [7, 7]], dtype=np.uint8))
    assert drawn.count("\n") == 1
    assert drawn.startswith("\x1b[38;2;0;0;0m\x1b[48;2;255;255;255m▀")
    assert drawn.endswith("\x1b[0m")
