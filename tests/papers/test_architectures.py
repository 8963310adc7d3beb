"""A vision Transformer and a decoder, each on a task of its own."""

import pytest

from depthpde.papers.ablation.variants import SYSTEMS
from depthpde.papers.architectures import EXPERIMENT, TASKS, architecture_of, verdict_grid
from depthpde.records.findings import JudgedClaim
from depthpde.records.statistics.paired import too_few
from depthpde.records.verdicts import Outcome
from depthpde.sweeps.scale import Scale


def test_the_architectures_are_what_they_are_called():
    runs = {run.task: run for run in EXPERIMENT.plan(Scale.MINI, seeds=1).runs}
    assert set(runs) == {"mnist-mini", "wikitext2-mini"}
    vision = [run for run in EXPERIMENT.plan(Scale.MINI, seeds=1).runs if run.task == "mnist-mini"]
    built = {type(run.build()).__name__ for run in vision}
    assert built == {"VisionTransformer", "Simulator"}
    assert {(run.model.patch, run.model.grid, run.model.prefix) for run in vision} == {
        (2, (7, 7), 1)
    }
    assert type(runs["wikitext2-mini"].build()).__name__ == "LanguageSimulator"
    assert architecture_of("mnist-mini") == "vision Transformer"
    looks = {task: run.training.evaluate_every for task, run in runs.items()}
    assert looks == {"mnist-mini": 100, "wikitext2-mini": 400}


@pytest.mark.parametrize("scale", [Scale.MINI, Scale.FULL])
def test_the_seeds_of_one_task_can_bear_out_claims_that_are_corrected_together(scale):
    tested = len(TASKS) * len(SYSTEMS) * 5
    seeds = EXPERIMENT.seeds[scale]
    assert too_few(seeds, comparisons=tested) is None
    assert too_few(seeds - 1, comparisons=tested) is not None


def claim(text, verdict="supported", effect=1.0):
    return JudgedClaim(claim=text, finding="", verdict=Outcome(verdict), effect=effect, n=6)


def test_verdicts_of_the_same_claim_stand_side_by_side():
    rows = verdict_grid(
        [
            claim("vision Transformer, Paper B, simulator: it holds"),
            claim("decoder, Paper B, simulator: it holds", "contradicted", -2.0),
            claim("decoder, Readers: a limit exists"),
        ]
    )
    assert rows == [
        {"claim": "Paper B: it holds", "vision, simulator": "supported, +1.00",
         "decoder, simulator": "contradicted, -2.00", "decoder, Transformer": "–"},
        {"claim": "Readers: a limit exists", "vision, simulator": "–", "decoder, simulator": "–",
         "decoder, Transformer": "supported, +1.00"},
    ]  # fmt: skip
