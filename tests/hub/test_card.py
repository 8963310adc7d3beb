"""A card is made from what a run or a comparison recorded."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from torch import nn

from depthpde.comparison.entrant import Entrant
from depthpde.comparison.report import ComparisonReport
from depthpde.hub.card import model_card
from depthpde.records.learning_curves import join
from depthpde.records.record import Record, read_record
from depthpde.records.scores import Endpoint
from recipes import ROOT

MODEL = nn.Linear(2, 3)


@pytest.fixture(scope="module")
def record() -> Record:
    """One of the committed records."""
    folder = next(iter(sorted((ROOT / "results" / "runs").iterdir())))
    return read_record(folder)


def entrant(label: str, *scores: float) -> Entrant:
    curve = join([[(10, score)] for score in scores])
    return Entrant(label=label, scores=dict(enumerate(scores)), curve=curve)


def test_a_run_gives_task_data_and_an_interval(record):
    card = model_card(MODEL, record)
    test = record.result["test"]
    assert f"# Linear on {record.task}" in card
    assert f"| test accuracy, % | {test['accuracy']:.4g} | [" in card
    assert f"{test['targets']:,} examples" in card
    assert record.result["data"]["manifest_sha256"] in card
    assert f"run `{record.id}`" in card


def test_a_comparison_gives_an_interval_over_seeds_and_the_verdicts():
    report = ComparisonReport(
        task="mine",
        endpoint=Endpoint.ACCURACY,
        entrants=[
            entrant("plain", 50.0, 51.0, 52.0, 50.5, 51.5, 50.2),
            entrant("diffusion", 60.0, 61.0, 62.0, 60.5, 61.5, 60.2),
        ],
    )
    card = model_card(MODEL, report)
    scores = [60.0, 61.0, 62.0, 60.5, 61.5, 60.2]
    half = scipy.stats.t.ppf(0.975, 5) * np.std(scores, ddof=1) / 6**0.5
    ends = f"[{np.mean(scores) - half:.4g}, {np.mean(scores) + half:.4g}]"
    assert f"| test accuracy, % | 60.87 | {ends} | 6 seeds |" in card
    assert "compared with 'plain': diffusion: better, +10" in card
    assert "| test accuracy, % | 50.87 |" in model_card(MODEL, report, label="plain")
    with pytest.raises(ValueError, match=r"`label` must be one of plain, diffusion, got 'x'"):
        model_card(MODEL, report, label="x")


def test_a_comparison_says_what_diverged_and_a_variant_without_a_score_has_no_card():
    """Its metric was not a number, in the head that the hub reads too."""
    wild = [replace(entrant("wild", *scores), diverged=2) for scores in ((), (50.0, 49.0, 51.0))]
    reports = [
        ComparisonReport(task="mine", endpoint=kind, entrants=[entrant("plain", 5.0, 5.1), each])
        for kind, each in zip((Endpoint.LOSS, Endpoint.ACCURACY), wild, strict=True)
    ]
    with pytest.raises(ValueError, match=r"`label` .* test loss, got 'wild' with none.*another"):
        model_card(MODEL, reports[0])
    assert "wild: 2 runs diverged, counted as the largest class" in model_card(MODEL, reports[1])


def test_what_is_not_finished_or_no_result_is_refused(record):
    with pytest.raises(ValueError, match="must be a finished run with a test"):
        model_card(MODEL, replace(record, result=None))
    with pytest.raises(ValueError, match="what execute or compare returned, got a PosixPath"):
        model_card(MODEL, Path("x"))
    assert "Nothing was measured" in model_card(MODEL)
