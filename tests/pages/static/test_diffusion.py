"""The instrument's numbers, computed by the browser, against the package's own operators."""

from __future__ import annotations

import base64
import itertools
import json
from typing import Any

import numpy as np
import pytest
import torch

from depthpde.layers.multiscale import SCALES, DiffusionScale, MultiscaleDiffusion
from depthpde.operators.diffusion import reference
from depthpde.operators.diffusion.problem import Problem
from depthpde.operators.energy import band_energies, dirichlet_energy, mass
from depthpde.operators.stability import Scheme, multiplier, ratio_bounds
from depthpde.pages.style import read_shared

EVERY = pytest.mark.parametrize("scheme", Scheme)
SIGNALS = ("steps", "spike", "waves", "noise")


@pytest.fixture(scope="module")
def ask(browser):
    """Return a function that evaluates an expression of the module ``m`` in the browser."""
    browser.open("about:blank")
    source = base64.b64encode(read_shared("diffusion.js").encode()).decode()
    address = json.dumps(f"data:text/javascript;base64,{source}")
    return lambda expression: browser.ask(f"import({address}).then((m) => {expression})")


def setting(**chosen: Any) -> dict[str, Any]:
    plain = {
        "scheme": "explicit", "ratio": 0.25, "steps": 1, "scales": 3, "dilation": 1,
        "signal": "steps",
    }  # fmt: skip
    return plain | chosen


def measure(ask, **chosen: Any) -> dict[str, Any]:
    return ask(f"m.measure({json.dumps(setting(**chosen))})")


def smooth(u: torch.Tensor, scheme: Scheme, ratio: float, steps: int, dilation: int):
    """Apply the dense definition, which takes a ratio beyond its bound too."""
    problem = Problem(steps=steps, scheme=scheme, dilation=dilation)
    return reference.evolve(u, torch.full((1, 1, 1), ratio, dtype=u.dtype), None, problem)


def field(values: list[float]) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64).reshape(1, -1, 1)


@EVERY
@pytest.mark.parametrize(("share", "dilation"), [(0.3, 1), (0.8, 3), (1.0, 8)])
def test_the_field_is_what_the_dense_definition_gives(ask, scheme, share, dilation):
    ratio = share * ask(f"m.SCHEMES.{scheme.value}.most")
    found = measure(ask, scheme=scheme.value, ratio=ratio, steps=2, dilation=dilation)
    u = field(found["signal"]["before"])
    parts = [smooth(u, scheme, ratio, steps, dilation) for steps in found["eachSteps"]]
    wanted = torch.stack(parts).mean(dim=0)
    size = float(wanted.abs().max())
    np.testing.assert_allclose(found["signal"]["after"], wanted.flatten(), atol=1e-10 * size)
    single = smooth(u, scheme, ratio, found["singleSteps"], dilation)
    size = float(single.abs().max())
    np.testing.assert_allclose(found["signal"]["single"], single.flatten(), atol=1e-10 * size)
    bands = band_energies(wanted)[0] / band_energies(u)[0]
    np.testing.assert_allclose([each["kept"] for each in found["bands"]], bands, rtol=1e-7)
    assert found["mass"] == pytest.approx([float(mass(u)), float(mass(wanted))], rel=1e-8)
    energies = [float(dirichlet_energy(each, dilation=dilation)) for each in (u, wanted)]
    assert found["energy"]["mix"] == pytest.approx(energies[1] / energies[0], rel=1e-8)


@EVERY
def test_the_transfer_function_is_the_formulas(ask, scheme):
    found = measure(ask, scheme=scheme.value, ratio=0.4, steps=3, dilation=2)
    omega = torch.linspace(0, torch.pi, len(found["transfer"]["omega"]), dtype=torch.float64)
    each = [
        multiplier(scheme, torch.tensor(0.4, dtype=torch.float64), omega, steps=steps, dilation=2)[
            :, 0
        ]
        for steps in found["eachSteps"]
    ]
    mixed = torch.stack(each).mean(dim=0)
    wanted = mixed.abs() if scheme is Scheme.UPWIND else mixed.real
    np.testing.assert_allclose(found["transfer"]["omega"], omega, atol=1e-15)
    np.testing.assert_allclose(found["transfer"]["mix"], wanted, atol=1e-13)


@EVERY
def test_what_is_drawn_is_what_a_layer_does(ask, scheme):
    layer = MultiscaleDiffusion(
        1,
        scales=[DiffusionScale(steps=2 * each.steps, dilation=3) for each in SCALES.values()],
        scheme=scheme,
        bound=0.5,
        initial_ratio=0.2,
        dtype=torch.float64,
    )
    found = measure(ask, scheme=scheme.value, ratio=0.2, steps=2, dilation=3)
    with torch.no_grad():
        wanted = layer(field(found["signal"]["before"])).flatten()
    # the layer's ratio is a sigmoid of its parameter, so it is 0.2 to about 1e-8
    np.testing.assert_allclose(found["signal"]["after"], wanted, atol=1e-7)


def test_the_energy_by_steps_is_that_of_the_field(ask):
    found = measure(ask, ratio=0.2, steps=16, scales=3, dilation=2)
    u = field(found["signal"]["before"])
    steps, share = found["energy"]["steps"], found["energy"]["share"]
    assert steps[0] == 0
    assert steps[-1] >= 16 * 16
    for k in (0, 1, len(steps) // 2, -1):
        after = smooth(u, Scheme.EXPLICIT, 0.2, steps[k], 2)
        wanted = dirichlet_energy(after, dilation=2) / dirichlet_energy(u, dilation=2)
        assert share[k] == pytest.approx(float(wanted), rel=1e-7)
    assert all(later <= earlier for earlier, later in itertools.pairwise(share))


def test_schemes_bounds_and_scales_are_the_packages(ask):
    printed = ask(
        "Object.entries(m.SCHEMES).map(([name, { stable, sign, most }]) => "
        "[name, String(stable), String(sign), most])"
    )
    assert [name for name, *_ in printed] == [scheme.value for scheme in Scheme]
    for name, stable, sign, most in printed:
        bounds = ratio_bounds(Scheme(name))
        assert (float(stable.lower()[:8]), float(sign.lower()[:8])) == (bounds.stable, bounds.sign)
        assert most > min(bounds.stable, 1.0), "instability can be seen"
    assert ask("m.FACTORS") == [scale.steps for scale in SCALES.values()]


def test_the_stencil_sums_to_one_and_is_the_spike_smoothed(ask):
    found = measure(ask, scales=1, signal="spike")
    weights = dict(zip(found["stencil"]["x"], found["stencil"]["y"], strict=True))
    assert weights == {-3: 0, -2: 0, -1: 0.25, 0: 0.5, 1: 0.25, 2: 0, 3: 0}
    assert found["signal"]["after"][64] == 0.5
    assert sum(measure(ask, steps=2)["stencil"]["y"]) == pytest.approx(1.0)


@EVERY
@pytest.mark.parametrize("signal", SIGNALS)
def test_every_end_of_every_slider_gives_finite_numbers(ask, scheme, signal):
    most = ask(f"m.SCHEMES.{scheme.value}.most")
    for ratio, steps, dilation in itertools.product((0.0, most), (1, 16), (1, 8)):
        found = measure(
            ask, scheme=scheme.value, signal=signal, ratio=ratio, steps=steps, dilation=dilation
        )
        for values in (found["signal"]["after"], found["energy"]["share"], found["stencil"]["y"]):
            assert all(isinstance(each, int | float) for each in values)  # NaN arrives as None


def test_zero_ratio_is_the_identity(ask):
    found = measure(ask, ratio=0.0)
    assert found["signal"]["after"] == pytest.approx(found["signal"]["before"], abs=1e-15)
    assert set(found["transfer"]["mix"]) == {1}
    assert [band["kept"] for band in found["bands"]] == pytest.approx([1.0] * 4)


def test_a_band_without_energy_has_no_share(ask):
    kept = [band["kept"] for band in measure(ask, signal="waves")["bands"]]
    assert [each is None for each in kept] == [False, True, True, False]


def test_the_words_follow_the_bounds(ask):
    def read(**chosen):
        return ask(f"m.read({json.dumps(setting(**chosen))})")

    bounds = ratio_bounds(Scheme.EXPLICIT)
    assert read(ratio=bounds.sign)["word"] == "stable, signs kept"
    assert read(ratio=bounds.sign + 0.01)["word"] == "stable, signs flip"
    wild = read(ratio=bounds.stable + 0.1)
    assert (wild["word"], wild["broken"]) == ("unstable", True)
    for dilation in (1, 2):
        assert "grows by 1.4 a step" in read(ratio=0.6, dilation=dilation)["why"]
    assert "at any ratio" in read(scheme="exact", ratio=4.0)["why"]


def test_one_setting_takes_less_than_a_frame_of_a_slow_screen(ask):
    """Sliders answer at once: the best of several turns, so that a busy machine does not decide."""
    worst = json.dumps(setting(scheme="exact", ratio=1.0, steps=16))
    best = ask(
        f"Math.min(...Array.from({{length: 30}}, () => {{ const t = performance.now();"
        f" m.measure({worst}); return performance.now() - t; }}))"
    )
    assert best < 33, f"{best:.1f} ms"
