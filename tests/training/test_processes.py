import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from depthpde.data.batching import Batches
from depthpde.training.processes import Processes
from training import two

TESTS = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """Two real processes that trained together: what each saw, and their folder."""
    folder = tmp_path_factory.mktemp("pair")
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(TESTS)}
    started = [
        subprocess.Popen(
            [sys.executable, TESTS / "training" / "two.py", folder, str(rank)],
            env=environment, stderr=subprocess.PIPE, text=True,
        )
        for rank in range(2)
    ]  # fmt: skip
    for each in started:
        _, errors = each.communicate(timeout=120)
        assert each.returncode == 0, errors
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(2)], folder


def losses(history):
    return [point["loss"] for point in history["points"]]


@pytest.mark.parametrize(("name", "config"), [("whole", two.CONFIG), ("one row", two.ONE_ROW)])
def test_two_processes_give_the_losses_of_one(pair, name, config):
    (leader, other), _ = pair
    alone = two.run(config)[1].to_dict()
    for both in (leader[name], other[name]):
        assert losses(both) == pytest.approx(losses(alone), rel=1e-9)  # float64, other sums
        assert both["tokens"] == alone["tokens"]
        assert both["best"]["accuracy"] == alone["best"]["accuracy"]


def test_both_processes_hold_the_same_weights_to_the_bit(pair):
    (leader, other), _ = pair
    assert leader["whole"]["digest"] == other["whole"]["digest"]


def test_a_signal_to_either_stops_both_and_one_process_goes_on(pair):
    (leader, other), folder = pair
    for each in (leader["stopped"], other["stopped"]):
        assert (each["status"], each["update"]) == ("interrupted", 9)
    resumed = two.run(two.CONFIG, folder=folder / "run")[1].to_dict()
    assert resumed["status"] == "done"
    assert losses(resumed) == pytest.approx(losses(leader["whole"]), rel=1e-9)


def test_refuses_processes_with_other_first_weights(pair):
    for output in pair[0]:
        assert "`model` must have the same weights in all 2 processes" in output["refused"]


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_shares_hold_every_row_once(split, count):
    batch = next(Batches(split, 5).epoch(0))
    shares = [Processes(rank, count).share(batch) for rank in range(count)]
    assert [each is None for each in shares] == [rank >= 5 for rank in range(count)]
    rows = torch.cat([each.tokens for each in shares if each is not None])
    assert sorted(map(tuple, rows.tolist())) == sorted(map(tuple, batch.tokens.tolist()))


def test_one_process_alone_adds_nothing():
    alone = Processes.joined()
    assert (alone.rank, alone.count, alone.leads) == (0, 1, True)
    assert alone.add([1.5]) == alone.largest([1.5]) == alone.from_leader([1.5]) == [1.5]
