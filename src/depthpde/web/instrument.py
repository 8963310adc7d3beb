"""The numbers behind the theory page: one setting of the sliders in, everything drawn out.

    u ← mean over scales k of D(r)^{s_k} u,      s_k = steps · (1, 4, 16)

Computed by the package's own operators, so the page shows what a layer does, not a second opinion.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import torch
from torch import Tensor

from depthpde.config import Positive, Settings
from depthpde.errors import check_range
from depthpde.layers.multiscale import SCALES
from depthpde.operators.diffusion.dispatch import evolve
from depthpde.operators.diffusion.problem import Problem
from depthpde.operators.energy import band_energies, dirichlet_energy, mass
from depthpde.operators.stability import Scheme, multiplier, ratio_bounds

LENGTH = 128
"""Sites of the signal."""
MODES = 97
"""Frequencies drawn between 0 and π."""
MAX_STEPS = 16
MAX_DILATION = 8
MAX_RATIO = {Scheme.EXPLICIT: 0.6, Scheme.UPWIND: 1.2}
"""How far the slider goes: a little beyond the bound, so that instability can be seen."""
UNBOUNDED_RATIO = 4.0
"""The same where a scheme has no bound."""
FACTORS = tuple(scale.steps for scale in SCALES.values())
"""Steps of the named scales in units of the slowest: 1, 4, 16."""
BANDS = ("low", "low-mid", "high-mid", "high")


class Signal(StrEnum):
    """What is smoothed."""

    STEPS = "steps"
    """Plateaus with noise: what smoothing is for, and what it costs."""
    SPIKE = "spike"
    """One site: comes out as the stencil."""
    WAVES = "waves"
    """A slow, a medium and a fast wave: each is multiplied by its H(ω)."""
    NOISE = "noise"
    """Every frequency alike."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting(Settings):
    """Where the sliders stand."""

    scheme: Scheme = Scheme.EXPLICIT
    """What one step does."""
    ratio: float = 0.25
    """r of one step; may lie beyond the bound of stability."""
    steps: Positive = 1
    """Steps of the slowest scale."""
    scales: Positive = 3
    """How many scales are mixed: 1 to 3."""
    dilation: Positive = 1
    """Distance between the sites that exchange."""
    signal: Signal = Signal.STEPS
    """What is smoothed."""

    def check(self) -> None:
        """Refuse what the sliders cannot show."""
        check_range("ratio", self.ratio, 0.0, max_ratio(self.scheme))
        for name, most in (
            ("steps", MAX_STEPS),
            ("scales", len(FACTORS)),
            ("dilation", MAX_DILATION),
        ):
            check_range(name, getattr(self, name), 1, most)

    @property
    def each_steps(self) -> tuple[int, ...]:
        """Steps of every scale that is mixed."""
        return tuple(self.steps * factor for factor in FACTORS[: self.scales])

    @property
    def single_steps(self) -> int:
        """Steps of the one scale to compare the mix with: as near to the mean as can be."""
        return round(sum(self.each_steps) / self.scales)


def max_ratio(scheme: Scheme) -> float:
    """Say how far the slider of the ratio goes for a scheme."""
    return MAX_RATIO.get(scheme, UNBOUNDED_RATIO)


def measure(setting: Setting) -> dict[str, Any]:
    """Compute everything that the theory page draws for one setting; plain numbers and words."""
    before = make_signal(setting.signal)
    after = _mix(before, setting)
    return {
        "stencil": _stencil(setting),
        "transfer": _transfer(setting),
        "energy": _energy(before, after, setting),
        "signal": {
            "before": _numbers(before),
            "after": _numbers(after),
            "single": _numbers(_smooth(before, setting, setting.single_steps)),
        },
        "bands": _bands(before, after),
        "mass": [float(mass(before)), float(mass(after))],
        "reading": read(setting),
        "each_steps": setting.each_steps,
        "single_steps": setting.single_steps,
        "max_ratio": max_ratio(setting.scheme),
    }


def make_signal(signal: Signal) -> Tensor:
    """Make the field that is smoothed, [1, length, 1], the same at every call."""
    random = torch.Generator().manual_seed(0)
    noise = torch.randn(LENGTH, generator=random, dtype=torch.float64)
    x = torch.arange(LENGTH, dtype=torch.float64)
    if signal is Signal.SPIKE:
        u = (x == LENGTH // 2).double()
    elif signal is Signal.WAVES:
        modes = torch.tensor([[3.0], [24.0], [96.0]], dtype=torch.float64)
        u = torch.cos(torch.pi * modes * (x + 0.5) / LENGTH).mean(dim=0)
    elif signal is Signal.NOISE:
        u = noise / 2
    else:
        plateaus = torch.tensor([0.0, 1.0, 0.25, -0.75], dtype=torch.float64)
        u = plateaus.repeat_interleave(LENGTH // 4) + 0.15 * noise
    return u.reshape(1, LENGTH, 1)


def read(setting: Setting) -> dict[str, Any]:
    """Say in words what this ratio does, and whether it is within its bounds."""
    bounds, r = ratio_bounds(setting.scheme), setting.ratio
    rough = torch.tensor([torch.pi / setting.dilation], dtype=torch.float64)
    ratio = torch.tensor(r).double()
    gain = float(multiplier(setting.scheme, ratio, rough, dilation=setting.dilation).abs())
    if r > bounds.stable:
        most = max(setting.each_steps)
        return {
            "word": "unstable",
            "broken": True,
            "why": f"beyond {bounds.stable:g} the roughest wave grows by {gain:.3g} a step: "
            f"×{gain**most:.2g} after {most} steps",
        }
    if r > bounds.sign:
        return {
            "word": "stable, signs flip",
            "broken": False,
            "why": f"beyond {bounds.sign:g} the roughest waves change their sign at every step",
        }
    limit = f"up to {bounds.sign:g}" if bounds.sign < float("inf") else "at any ratio"
    return {
        "word": "stable, signs kept",
        "broken": False,
        "why": f"{limit} every wave only shrinks; the roughest keeps {gain:.3g} a step",
    }


def _smooth(u: Tensor, setting: Setting, steps: int) -> Tensor:
    """Diffuse without the check on the ratio: beyond the bound is what a reader wants to see."""
    problem = Problem(steps=steps, scheme=setting.scheme, dilation=setting.dilation)
    ratio = torch.full((1, 1, 1), setting.ratio, dtype=u.dtype)
    return evolve(u, ratio, None, problem)


def _mix(u: Tensor, setting: Setting) -> Tensor:
    parts = [_smooth(u, setting, steps) for steps in setting.each_steps]
    return torch.stack(parts).mean(dim=0)


def _stencil(setting: Setting) -> dict[str, Any]:
    """Give the weights of the mix: what one spike becomes, as far as it can be seen."""
    half = min(48, max(setting.each_steps) * setting.dilation + 2)
    spike = torch.zeros(1, 4 * 48 + 1, 1, dtype=torch.float64)
    spike[0, 2 * 48] = 1.0
    weights = _mix(spike, setting)[0, 2 * 48 - half : 2 * 48 + half + 1]
    return {"x": list(range(-half, half + 1)), "y": _numbers(weights)}


def _transfer(setting: Setting) -> dict[str, Any]:
    """Give H(ω) by formula; its size where it is complex (upwind)."""
    omega = torch.linspace(0, torch.pi, MODES, dtype=torch.float64)

    ratio = torch.tensor(setting.ratio, dtype=torch.float64)

    def response(steps: int) -> Tensor:
        return multiplier(setting.scheme, ratio, omega, steps=steps, dilation=setting.dilation)

    def shown(h: Tensor) -> list[float]:
        return _numbers(h.abs() if causal else h.real)

    causal = setting.scheme is Scheme.UPWIND
    each = [response(steps) for steps in setting.each_steps]
    return {
        "omega": _numbers(omega),
        "mix": shown(torch.stack(each).mean(dim=0)),
        "each": [shown(one) for one in each],
        "single": shown(response(setting.single_steps)),
        "quantity": "|H(ω)|" if causal else "H(ω)",
    }


def _energy(before: Tensor, after: Tensor, setting: Setting) -> dict[str, Any]:
    """Give the Dirichlet energy by steps taken, as a share of the energy at the start."""
    last = max(max(setting.each_steps), 16)
    stride = max(1, last // 32)
    start = float(dirichlet_energy(before, dilation=setting.dilation))
    u, steps, shares = before, [0], [1.0]
    while steps[-1] < last:
        u = _smooth(u, setting, stride)
        steps.append(steps[-1] + stride)
        shares.append(float(dirichlet_energy(u, dilation=setting.dilation)) / start)
    mixed = float(dirichlet_energy(after, dilation=setting.dilation)) / start
    return {"steps": steps, "share": shares, "mix": mixed}


def _bands(before: Tensor, after: Tensor) -> list[dict[str, Any]]:
    """Say what share of the energy of each frequency band is kept."""
    old, new = band_energies(before)[0], band_energies(after)[0]
    return [
        {"name": name, "kept": float(new[band] / old[band]) if float(old[band]) > 1e-12 else None}
        for band, name in enumerate(BANDS)
    ]


def _numbers(values: Tensor) -> list[float]:
    return [float(f"{value:.6g}") for value in values.flatten().tolist()]
