"""Three models, paired: same first weights, nothing to download, the past alone."""

import torch

import depthpde as dp
from depthpde.demo.text import CONTROL, OURS, PLAIN, plan


def test_the_demo_is_three_models_of_one_text_that_python_carries(tmp_path):
    asked = plan(tmp_path, seeds=2)
    assert len(asked.runs) == 6
    assert [each.label for each in asked.variants] == [PLAIN, OURS, CONTROL]
    assert asked.runs[0].about.splits["train"] > 300_000
    assert not list((tmp_path / "tasks").glob("*/*.part"))


def test_what_the_models_share_starts_alike_and_the_future_stays_hidden(tmp_path):
    runs = {cell.variant: run.build().eval() for cell, run in plan(tmp_path, seeds=1).cells}
    weights = {name: model.state_dict() for name, model in runs.items()}
    for key, first in weights[PLAIN].items():
        assert torch.equal(first, weights[OURS][key])
        assert torch.equal(first, weights[CONTROL][key])
    added = {n: sum(p.numel() for p in m.parameters()) for n, m in runs.items()}
    assert (added[OURS] - added[PLAIN], added[CONTROL] - added[PLAIN]) == (128, 384)
    tokens = torch.randint(1, 257, (1, 12), generator=torch.Generator().manual_seed(0))
    for model in runs.values():
        assert not dp.check_causality(model, tokens, trials=2).leaks


def test_a_short_demo_warms_up_for_less_than_its_length(tmp_path):
    assert {run.training.warmup for run in plan(tmp_path, updates=2, seeds=1).runs} == {1}


def test_the_seed_that_chose_its_settings_judges_nothing(tmp_path):
    assert {run.seed for run in plan(tmp_path, seeds=3).runs} == {1, 2, 3}
    assert {run.seed for run in plan(tmp_path, seeds=[5]).runs} == {5}
