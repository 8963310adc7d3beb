"""What trained diffusion layers do: their ratios by depth, and what they pass of each frequency.

    H(ω) = (1 − 4 r sin²(δω/2))ⁿ        one explicit diffusion of n steps, by formula

Computed from the learned ratios of the records; no model is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from depthpde.records.record import Record
from depthpde.records.run_model import POSITIONS, SCALES, PlacedLayer, Site, placements, site_of

OMEGA = np.linspace(0.0, np.pi, 49)
"""Frequencies, in radians per site."""
BANDS = ("0–¼π", "¼–½π", "½–¾π", "¾π–π")
"""Four bands of equal width, from slow to fast."""
BOUND = {
    "explicit": 0.25, "backward_euler": 1.0, "crank_nicolson": 0.5, "exact": 1.0, "upwind": 0.5,
}  # fmt: skip
"""The largest ratio that a layer learns by default."""
DEFAULT_SCALES = "fast medium slow"
"""What a multi-scale layer mixes by default."""

LEARNED = ("ratios", "weights")
"""What a result holds of trained layers, by module."""

Values = NDArray[np.float64]
Response = NDArray[np.complex128] | NDArray[np.float64]
"""Real but for schemes that shift a wave."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Passed:
    """What a layer passes of each frequency, over features and runs."""

    mean: Values
    """Mean of |H(ω)|, by `OMEGA`."""
    low: Values
    high: Values
    energy: Values
    """Mean of |H(ω)|², which is not the square of the mean."""

    @classmethod
    def of(cls, gains: Values) -> Passed:
        """Sum up |H| [frequencies, features of all runs]."""
        return cls(
            mean=gains.mean(axis=1),
            low=gains.min(axis=1),
            high=gains.max(axis=1),
            energy=(gains**2).mean(axis=1),
        )

    def bands(self) -> list[float]:
        """Return the share of energy kept in each of the four bands, for a white field."""
        step = (len(OMEGA) - 1) // len(BANDS)
        return [
            float(np.mean(self.energy[i * step : (i + 1) * step + 1])) for i in range(len(BANDS))
        ]


def learned_ratios(records: Sequence[Record]) -> dict[Site, list[float]]:
    """Return the ratios of all features and runs for each place, in the order of depth."""
    found: dict[Site, list[float]] = {}
    for record in records:
        for name, values in _learned(record, "ratios").items():
            site = site_of(name)
            if site is not None:
                found.setdefault(site, []).extend(values)
    return {site: found[site] for site in sorted(found, key=_depth)}


def learned_weights(records: Sequence[Record]) -> dict[str, list[float]]:
    """Return the weights of every scale of multi-scale layers, of all places and runs."""
    found: dict[str, list[float]] = {}
    for record in records:
        names = [_scales(each) for each in placements(record.config) if each.kind == "multiscale"]
        for values in _learned(record, "weights").values():
            for name, value in zip(names[0] if names else (), values, strict=False):
                found.setdefault(name, []).append(value)
    return found


def transfer(
    scheme: str, ratio: Values, omega: Values, *, steps: int = 1, dilation: int = 1
) -> Response:
    """Return H(ω) of a diffusion, [modes, features]; `multiplier` of the operators, in numpy."""
    rs = 4 * ratio[None, :] * np.sin(dilation * omega[:, None] / 2) ** 2
    if scheme == "upwind":
        turn = np.exp(-1j * dilation * omega[:, None])
        return (1 - ratio[None, :] * (1 - turn)) ** steps
    return _STEP[scheme](rs) ** steps


_STEP: dict[str, Callable[[Values], Any]] = {
    "explicit": lambda rs: 1 - rs,
    "backward_euler": lambda rs: 1 / (1 + rs),
    "crank_nicolson": lambda rs: (1 - rs / 2) / (1 + rs / 2),
    "exact": lambda rs: np.exp(-rs),
}
"""One step's H of r · 4 sin²(ω/2)."""


def passed(records: Sequence[Record]) -> dict[str, Passed]:
    """Return what every trained linear diffusion along the sequence passes, by place.

    The scales of a multi-scale layer are joined by their learned weights. Layers that have no
    H(ω), adaptive and gated ones, and diffusion over a plane are left out.
    """
    alike: dict[object, list[Record]] = {}
    for record in records:
        sizes = (_sizes(_learned(record, what)) for what in LEARNED)
        alike.setdefault((repr(record.config.get("model")), *sizes), []).append(record)
    found: dict[Site, list[Values]] = {}
    for group in alike.values():
        try:
            responses = _responses(group)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError):
            continue  # a config that this version does not know
        for site, response in responses.items():
            found.setdefault(site, []).append(np.abs(response))
    joined = {site: np.concatenate(each, axis=1) for site, each in found.items()}
    return {
        site.words: Passed.of(each)
        for site, each in sorted(joined.items(), key=lambda item: _depth(item[0]))
    }


def start_and_bound(config: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """Return where the ratios of a model began and their bound; None where they differ."""
    named = set()
    for placed in placements(config):
        bound = placed.settings.get("bound") or BOUND.get(_scheme(placed, config), 0.25)
        start = placed.settings.get("initial_ratio")
        named.add((bound / 2 if start is None else start, bound))
    return named.pop() if len(named) == 1 else (None, None)


def _sizes(learned: Mapping[str, list[float]]) -> tuple[tuple[str, int], ...]:
    return tuple((name, len(values)) for name, values in learned.items())


def _stacked(runs: Sequence[Mapping[str, list[float]]]) -> dict[str, list[list[float]]]:
    return {name: [run[name] for run in runs] for name in runs[0]}


def _responses(records: Sequence[Record]) -> dict[Site, Response]:
    """Return H of every place of runs of one model, [modes, features of all]; scales joined."""
    config = records[0].config
    layers = {each.position: each for each in placements(config)}
    ratios, weights = (_stacked([_learned(run, what) for run in records]) for what in LEARNED)
    found: dict[Site, Response] = {}
    for name, values in ratios.items():
        site = site_of(name)
        placed = layers.get(site.position) if site else None
        if site is None or placed is None or not _is_linear(placed, config):
            continue
        steps, dilation = _reach(placed, site.scale)
        learned = np.array(values)  # [runs, features]
        response = transfer(
            _scheme(placed, config), learned.ravel(), OMEGA, steps=steps, dilation=dilation
        )
        share: float | Values = 1.0
        if site.scale is not None:
            mixed = np.array(weights.get(name.partition(".members.")[0], [()]))  # [runs, scales]
            if site.scale >= mixed.shape[1]:
                continue
            share = np.repeat(mixed[:, site.scale], learned.shape[1])
        whole = Site(site.block, site.position, site.part, None)
        found[whole] = found.get(whole, 0.0) + share * response
    return found


def _is_linear(placed: PlacedLayer, config: Mapping[str, Any]) -> bool:
    model = config.get("model") or {}
    flat = model.get("geometry") != "plane" and model.get("input") != "patch"
    return flat and placed.kind in ("diffusion", "multiscale") and not placed.settings.get("gated")


def _scheme(placed: PlacedLayer, config: Mapping[str, Any]) -> str:
    causal = bool((config.get("model") or {}).get("causal"))
    named = placed.settings.get("scheme") or ("upwind" if causal else "explicit")
    return named if named in BOUND else "explicit"


def _reach(placed: PlacedLayer, scale: int | None) -> tuple[int, int]:
    if scale is None:
        return int(placed.settings.get("steps") or 1), int(placed.settings.get("dilation") or 1)
    scales = placed.settings.get("scales") or DEFAULT_SCALES
    if isinstance(scales, str):
        return SCALES.get(scales.split()[scale], 1), 1
    return int(scales[scale].get("steps") or 1), int(scales[scale].get("dilation") or 1)


def _scales(placed: PlacedLayer) -> list[str]:
    """Name the scales of a multi-scale layer in their order."""
    scales = placed.settings.get("scales") or DEFAULT_SCALES
    if isinstance(scales, str):
        return scales.split()
    return [f"{each.get('steps') or 1} steps" for each in scales]


def _learned(record: Record, what: str) -> dict[str, list[float]]:
    return record.keep(f"learned {what}", lambda: _parse_learned(record, what))


def _parse_learned(record: Record, what: str) -> dict[str, list[float]]:
    named = (record.result or {}).get(what)
    if not isinstance(named, Mapping):
        return {}
    return {
        str(name): list(map(float, values))
        for name, values in named.items()
        if isinstance(values, list) and set(map(type, values)) <= {float, int, bool}
    }


def _depth(site: Site) -> tuple[int, int, str, int]:
    return site.block, list(POSITIONS).index(site.position), site.part, site.scale or 0
