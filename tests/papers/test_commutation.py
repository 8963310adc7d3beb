"""The commutator is judged by its correlation within tasks, corrected over the measures."""

from __future__ import annotations

import numpy as np

from depthpde.records.diagnostic import foretell
from depthpde.records.statistics.paired import holm
from depthpde.records.verdicts import Outcome
from papers.invented import judge
from records.test_diagnostic import TASKS, VARIANTS, make


def test_a_measure_is_confirmed_only_where_more_of_it_means_less_accuracy(tmp_path):
    random = np.random.default_rng(3)
    noise = {(task, at): random.normal() for task in TASKS for at in range(8)}
    measured = {
        "falls": (lambda task, at: 50.0 - at, Outcome.SUPPORTED),
        "rises": (lambda task, at: 50.0 + at, Outcome.CONTRADICTED),
        "noise": (lambda task, at: 50.0 + noise[task, at], Outcome.INCONCLUSIVE),
    }
    for name, (accuracy, wanted) in measured.items():
        (tmp_path / name).mkdir()
        found = judge(make(tmp_path / name, accuracy, lambda task, at: at))
        assert found.claims[0].verdict is wanted, name


def test_p_is_corrected_over_the_measures(tmp_path):
    evidence = make(tmp_path, lambda task, at: 50.0 - at, lambda task, at: at)
    printed = [each.p for each in foretell(evidence)]
    judged = [each.p for each in judge(evidence).claims]
    assert judged == holm(printed) != printed


def test_too_few_seeds_or_cells_decide_nothing(tmp_path):
    def claims(name, **few):
        (tmp_path / name).mkdir()
        made = make(tmp_path / name, lambda task, at: 50.0 - at, lambda task, at: at, **few)
        return judge(made).claims

    seeds = claims("seeds", seeds=5)
    assert {each.verdict for each in seeds} == {Outcome.INCONCLUSIVE}
    assert "5 pairs on text-mini, 6 on every task are wanted" in seeds[0].finding
    cells = claims("cells", tasks=TASKS[:1], variants=VARIANTS[:3])
    assert {each.verdict for each in cells} == {Outcome.INCONCLUSIVE}
    assert "so few cells cannot tell" in cells[0].finding
