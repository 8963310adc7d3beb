"""The doctor's verdict on a finished run, from the measures that its record keeps.

A run that no doctor watched still has its probe: means over heads and sequences by depth. The same
signs and thresholds judge them; what needs single heads or a second pass is said to be unmeasured.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from depthpde.doctor.conditions.condition import Symptom
from depthpde.doctor.conditions.table import symptoms
from depthpde.doctor.depth_profile import DepthProfile, DepthSeries, block_labels, depth_labels
from depthpde.doctor.not_measured import NotMeasured
from depthpde.doctor.thresholds import OWN, Grade, Thresholds
from depthpde.records.probes import read_probe
from depthpde.records.record import Record
from depthpde.web.diagnosis import LOOKS, NOTHING, UNMEASURED, DoctorEntry, ShownVerdict

AVERAGED = "a record keeps the mean over heads; depthpde doctor --checkpoint looks at each"
WORST_FIRST = (Grade.ILL, Grade.WATCH, Grade.HEALTHY)


def probe_verdict(record: Record) -> DoctorEntry:
    """Judge the probe of a finished run; nothing where it has none, or one of another form."""
    try:
        found = symptoms(_profile(record))
        update = int((record.result or {}).get("update", 0))
    except (ValueError, KeyError, TypeError, IndexError):
        return NOTHING
    of = {**_thresholds().of, **OWN}
    grades = {c: of[c].grade(s.value) for c, s in found.items() if isinstance(s, Symptom)}
    order = sorted(grades, key=lambda condition: WORST_FIRST.index(grades[condition]))
    verdicts = [
        ShownVerdict(grades[c].value, *LOOKS[grades[c].value], str(c), _evidence(found[c]))
        for c in order
    ]
    sign, tone = LOOKS[UNMEASURED]
    verdicts += [
        ShownVerdict(UNMEASURED, sign, tone, str(condition), each.reason)
        for condition, each in found.items()
        if isinstance(each, NotMeasured)
    ]
    return DoctorEntry(update, tuple(verdicts))


def _profile(record: Record) -> DepthProfile:
    probed = read_probe(record).value
    model: Mapping[str, Any] = record.config["model"]
    blocks = int(model["blocks"])
    labels = {blocks + 1: depth_labels(blocks), blocks: block_labels(blocks)}
    series = {
        name: DepthSeries(name, name, labels[len(values)], tuple(map(float, values)))
        for name, values in dict(probed["depth"]).items()
        if len(values) in labels and name != "attention.entropy" and None not in values
    }
    layers = dict(probed.get("layers") or {}).get("energy.cfl_margin")
    if isinstance(layers, Mapping) and layers:
        margins = tuple(float(each) for each in layers.values())
        name = "energy.cfl_margin"
        series[name] = DepthSeries(name, name, tuple(map(str, layers)), margins)
    return DepthProfile(
        model=record.label, family="", blocks=blocks, parameters=0, sequences=2, tokens=4,
        causal=False, seconds=0.0, faithful=None, series=series,
        missing={"attention": AVERAGED, "gradient": "the record keeps no gradients"},
        facts={"dim": model["dim"]},
    )  # fmt: skip


def _evidence(found: Symptom | NotMeasured) -> str:
    return found.evidence if isinstance(found, Symptom) else found.reason


@cache
def _thresholds() -> Thresholds:
    return Thresholds.read()
