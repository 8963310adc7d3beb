"""Train in children that are killed at random moments; print how often, and whether it showed.

A child asks before it goes on after an update. The parent grants a random number of updates and
one more, and kills it a random time after: while it computes, looks at the validation split,
writes a checkpoint, or waits. So each child dies on its way, however slow the machine is.
"""

import os
import random
import signal
import sys
import time
from pathlib import Path

import torch
import torch._dynamo  # the optimizer imports it; once, before the forks

from depthpde.training.fingerprint import weights_digest
from depthpde.training.loop import train
from training.counting import make_config, make_model, make_split

CONFIG = make_config(updates=100, checkpoint_every=3, evaluate_every=5)
LONGEST = 6
"""Updates granted to a child that is to be killed: fewer than 100 in all."""


def build():
    return make_model(layer="depthwise_conv")  # no kernels that every child would have to load


def run(folder: Path, callback=None) -> None:
    torch.set_num_threads(1)
    model = build()
    validation = make_split("validation", 60)
    train(model, make_split(), CONFIG, validation=validation, folder=folder, callback=callback)
    (folder / "digest").write_text(weights_digest(model.state_dict()))


def child(folder: Path, callback=None) -> int:
    number = os.fork()
    if number:
        return number
    try:
        run(folder, callback)
    except BaseException as error:
        print(repr(error), file=sys.stderr, flush=True)
        os._exit(1)
    os._exit(0)


def kill_on_its_way(folder: Path, chance: random.Random) -> int:
    """Let a child make a few updates, kill it, and return how many it had made."""
    asked, granted = os.pipe(), os.pipe()

    def ask(history, point):
        os.write(asked[1], b"?")
        os.read(granted[0], 1)

    number = child(folder, ask)
    updates = chance.randrange(LONGEST)
    for _ in range(updates):
        os.read(asked[0], 1)
        os.write(granted[1], b"!")
    time.sleep(chance.uniform(0.0, 0.06))
    os.kill(number, signal.SIGKILL)
    _, status = os.waitpid(number, 0)
    assert os.WIFSIGNALED(status), "it ended by itself"
    for end in (*asked, *granted):
        os.close(end)
    return updates


def main(folder: Path, kills: int) -> None:
    whole, broken = folder / "whole", folder / "broken"
    os.waitpid(child(whole), 0)
    chance = random.Random(0)
    made = [kill_on_its_way(broken, chance) for _ in range(kills)]
    assert not (broken / "digest").exists()
    _, status = os.waitpid(child(broken), 0)
    assert os.waitstatus_to_exitcode(status) == 0
    same = (whole / "digest").read_text() == (broken / "digest").read_text()
    print(len(made), len(set(made)), same)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
