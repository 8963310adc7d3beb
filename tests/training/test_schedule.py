import math

import pytest
import torch

from depthpde.training.schedule import Schedule, rate

RUN = {"updates": 100, "warmup": 10, "floor": 0.1}


@pytest.mark.parametrize("schedule", Schedule)
def test_every_schedule_rises_to_its_peak_and_never_rises_again(schedule):
    rates = [rate(schedule, update, **RUN) for update in range(100)]
    assert rates[:10] == pytest.approx([(k + 1) / 10 for k in range(10)])
    assert max(rates) == 1.0
    assert rates[9:] == sorted(rates[9:], reverse=True)
    assert min(rates) > 0


@pytest.mark.parametrize("schedule", [Schedule.COSINE, Schedule.LINEAR])
def test_floor_is_reached_at_the_end_and_kept_beyond(schedule):
    assert rate(schedule, 100, **RUN) == pytest.approx(0.1)
    assert rate(schedule, 1000, **RUN) == pytest.approx(0.1)


@pytest.mark.parametrize(("schedule", "half"), [(Schedule.COSINE, 0.55), (Schedule.LINEAR, 0.55)])
def test_half_way_is_half_way(schedule, half):
    assert rate(schedule, 55, **RUN) == pytest.approx(half)


def test_cosine_is_torchs():
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([parameter], lr=1.0)
    theirs = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 90, eta_min=0.1)
    for update in range(10, 100):
        ours = rate(Schedule.COSINE, update, **RUN)
        assert ours == pytest.approx(theirs.get_last_lr()[0], abs=1e-9)
        optimizer.step()
        theirs.step()


def test_rsqrt_is_that_of_the_lra_code_up_to_its_peak_factor():
    for update in (0, 500, 999, 1000, 4999):
        step = update + 1
        theirs = 0.05 * min(1, step / 1000) / math.sqrt(max(step, 1000))
        ours = rate(Schedule.RSQRT, update, updates=5000, warmup=1000, floor=0.0)
        assert ours * 0.05 / math.sqrt(1000) == pytest.approx(theirs)


def test_no_warmup_starts_at_the_peak():
    for schedule in Schedule:
        assert rate(schedule, 0, updates=10, warmup=0, floor=0.0) == 1.0
