from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
import torch

from depthpde.layers.multiscale import DiffusionScale, MultiscaleDiffusion
from depthpde.operators.stability import Scheme, ratio_bounds
from depthpde.web.instrument import (
    FACTORS,
    LENGTH,
    MODES,
    Setting,
    Signal,
    make_signal,
    max_ratio,
    measure,
    read,
)

EVERY = pytest.mark.parametrize("scheme", Scheme)


@EVERY
def test_what_is_drawn_is_what_a_layer_does(scheme: Scheme) -> None:
    layer = MultiscaleDiffusion(
        1,
        scales=[DiffusionScale(steps=2 * factor, dilation=3) for factor in FACTORS],
        scheme=scheme,
        bound=0.5,
        initial_ratio=0.2,
        dtype=torch.float64,
    )
    found = measure(Setting(scheme=scheme, ratio=0.2, steps=2, dilation=3))
    with torch.no_grad():
        smooth = layer(make_signal(Signal.STEPS)).flatten().numpy()
    np.testing.assert_allclose(found["signal"]["after"], smooth, rtol=6e-6)  # six digits are sent
    omega = torch.linspace(0, torch.pi, MODES, dtype=torch.float64)
    h = layer.transfer_function(omega)[:, 0]
    wanted = (h.abs() if scheme is Scheme.UPWIND else h.real).detach().numpy()
    np.testing.assert_allclose(found["transfer"]["mix"], wanted, rtol=6e-6, atol=1e-15)


@EVERY
@pytest.mark.parametrize("signal", Signal)
def test_every_setting_gives_plain_finite_numbers(scheme: Scheme, signal: Signal) -> None:
    for ratio in (0.0, max_ratio(scheme)):
        setting = Setting(scheme=scheme, signal=signal, ratio=ratio, steps=16, scales=3, dilation=8)
        found = measure(setting)
        sent = json.loads(json.dumps(found, allow_nan=False))  # refuses what is not finite
        assert len(sent["signal"]["after"]) == LENGTH


def test_the_stencil_sums_to_one_and_is_the_spike_smoothed() -> None:
    found = measure(Setting(ratio=0.25, steps=1, scales=1, signal=Signal.SPIKE))
    assert dict(zip(found["stencil"]["x"], found["stencil"]["y"], strict=True)) == pytest.approx(
        {-3: 0, -2: 0, -1: 0.25, 0: 0.5, 1: 0.25, 2: 0, 3: 0}
    )
    assert found["signal"]["after"][LENGTH // 2] == 0.5


def test_the_energy_falls_within_the_bound_and_rises_beyond() -> None:
    calm = measure(Setting(ratio=0.5))["energy"]["share"]
    wild = measure(Setting(ratio=0.6))["energy"]["share"]
    assert all(after <= before for before, after in itertools.pairwise(calm))
    assert wild[-1] > 10


def test_mass_is_kept_by_every_scheme_but_upwind() -> None:
    for scheme in Scheme:
        before, after = measure(Setting(scheme=scheme, ratio=0.2))["mass"]
        assert (abs(after - before) < 1e-9) == (scheme is not Scheme.UPWIND)


def test_one_scale_has_nothing_to_be_compared_with() -> None:
    found = measure(Setting(scales=1, steps=3))
    assert found["each_steps"] == (3,)
    assert found["single_steps"] == 3
    assert found["signal"]["single"] == found["signal"]["after"]


def test_zero_ratio_is_the_identity() -> None:
    found = measure(Setting(ratio=0.0))
    assert found["signal"]["after"] == found["signal"]["before"]
    assert set(found["transfer"]["mix"]) == {1.0}
    assert [band["kept"] for band in found["bands"]] == pytest.approx([1.0] * 4)


def test_the_words_follow_the_bounds() -> None:
    bounds = ratio_bounds(Scheme.EXPLICIT)
    assert read(Setting(ratio=bounds.sign))["word"] == "stable, signs kept"
    assert read(Setting(ratio=bounds.sign + 0.01))["word"] == "stable, signs flip"
    wild = read(Setting(ratio=bounds.stable + 0.1))
    assert (wild["word"], wild["broken"]) == ("unstable", True)
    assert "grows by 1.4 a step" in wild["why"]
    wide = Setting(ratio=bounds.stable + 0.1, dilation=2)
    assert "grows by 1.4 a step" in read(wide)["why"]
    assert "at any ratio" in read(Setting(scheme=Scheme.EXACT, ratio=4.0))["why"]


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"ratio": 0.7}, r"`ratio` must lie in \[0, 0.6\], got 0.7"),
        ({"ratio": float("nan")}, "`ratio` must be a finite number"),
        ({"steps": 0}, "`steps` must be at least 1"),
        ({"steps": 17}, r"`steps` must lie in \[1, 16\]"),
        ({"scales": 4}, r"`scales` must lie in \[1, 3\]"),
        ({"dilation": 9}, r"`dilation` must lie in \[1, 8\]"),
        ({"scheme": "eplicit"}, "did you mean 'explicit'"),
        ({"signal": "nois"}, "did you mean 'noise'"),
    ],
)
def test_refuses_what_no_slider_can_ask_for(wrong: dict[str, object], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        Setting(**wrong)  # type: ignore[arg-type]
