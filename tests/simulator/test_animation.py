import sys

import pytest
from PIL import Image

from depthpde.simulator.animation import write_gif
from depthpde.simulator.simulate import simulate
from depthpde.simulator.systems import SYSTEMS


@pytest.mark.parametrize(
    ("name", "smaller"),
    [
        ("equiangular", {"end": 1.0}),
        ("allen_cahn", {"end": 1.0}),
        ("turing_2d", {"side": 8, "end": 1.0}),
    ],
)
def test_a_path_is_written_as_a_moving_picture(tmp_path, name, smaller):
    system = SYSTEMS[name].vary(**smaller)
    path = simulate(system, rtol=1e-4)
    file = write_gif(system, path, tmp_path / "a.gif", frames=5)
    with Image.open(file) as picture:
        assert picture.n_frames == 5
        first = picture.convert("RGB").tobytes()
        picture.seek(4)
        assert picture.convert("RGB").tobytes() != first


def test_refuses_no_frames_and_a_missing_extra(tmp_path, monkeypatch):
    system = SYSTEMS["equiangular"].vary(end=0.1)
    path = simulate(system, rtol=1e-3)
    with pytest.raises(ValueError, match="frames"):
        write_gif(system, path, tmp_path / "a.gif", frames=0)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ValueError, match=r"write_gif\(\) needs matplotlib"):
        write_gif(system, path, tmp_path / "a.gif")
