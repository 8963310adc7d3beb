"""A training that is put back stands where it stood: weights, buffers, optimizer; not its rate."""

import copy

import torch
from torch import nn

from depthpde.doctor.alarms.rollback import Rollback


def test_everything_goes_back_but_the_learning_rate():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)

    def update():
        model(torch.randn(8, 4)).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    update()
    kept = Rollback(model, optimizer)
    kept.keep(1)
    weights = copy.deepcopy(model.state_dict())
    moments = copy.deepcopy(optimizer.state_dict()["state"])
    for _ in range(2):
        update()
        optimizer.param_groups[0]["lr"] = 0.05
        assert kept.restore() == 1
        assert all(torch.equal(weights[name], each) for name, each in model.state_dict().items())
        state = optimizer.state_dict()["state"]
        assert all(torch.equal(moments[k]["exp_avg"], state[k]["exp_avg"]) for k in moments)
        assert optimizer.param_groups[0]["lr"] == 0.05
