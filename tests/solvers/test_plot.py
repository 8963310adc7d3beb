import itertools
import sys

import pytest
import torch

from depthpde.solvers.integrate import integrate
from depthpde.solvers.plot import PICTURES
from depthpde.solvers.term import diffusion_term


def path():
    torch.manual_seed(0)
    return integrate(diffusion_term(1.0), torch.randn(1, 8, 2), torch.linspace(0, 2, 9), substeps=8)


@pytest.mark.parametrize("what", PICTURES)
def test_a_picture_is_drawn_into_axes_that_are_returned(what):
    pytest.importorskip("matplotlib")
    axes = path().plot(what)
    assert axes.get_xlabel() == "time t (depth)"
    assert path().plot(what, ax=axes) is axes


def test_energy_is_drawn_as_it_falls():
    pytest.importorskip("matplotlib")
    values = path().plot("energy").lines[0].get_ydata()
    assert all(b < a for a, b in itertools.pairwise(values))


def test_an_unknown_picture_and_a_missing_extra_are_named(monkeypatch):
    with pytest.raises(ValueError, match=r"`what` must be one of field.*'energy'"):
        path().plot("enregy")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ValueError, match=r"depthpde\[plot\]"):
        path().plot()
