"""Train in children that are killed at random moments, until one ends; print the digests."""

import os
import random
import signal
import sys
import time
from pathlib import Path

import torch

import depthpde.operators.diffusion.kernels  # noqa: F401  imported once, before the forks
from depthpde.training.identity import weights_digest
from depthpde.training.loop import train
from training.counting import make_config, make_model, make_split

CONFIG = make_config(updates=100, checkpoint_every=3, evaluate_every=10)


def run(folder: Path) -> None:
    torch.set_num_threads(1)
    model = make_model()
    train(model, make_split(), CONFIG, validation=make_split("validation", 60), folder=folder)
    (folder / "digest").write_text(weights_digest(model.state_dict()))


def child(folder: Path) -> int:
    """Fork before any kernel has run: importing is what takes long."""
    number = os.fork()
    if number:
        return number
    try:
        run(folder)
    except BaseException as error:
        print(repr(error), file=sys.stderr, flush=True)
        os._exit(1)
    os._exit(0)


def main(folder: Path, kills: int) -> None:
    whole, broken = folder / "whole", folder / "broken"
    began = time.monotonic()
    os.waitpid(child(whole), 0)
    alone = time.monotonic() - began
    chance = random.Random(0)
    killed = 0
    while not (broken / "digest").exists():
        number = child(broken)
        if killed < kills:
            time.sleep(alone * chance.uniform(0.1, 0.4))
            os.kill(number, signal.SIGKILL)
        _, status = os.waitpid(number, 0)
        killed += os.WIFSIGNALED(status)
        assert os.WIFSIGNALED(status) or os.waitstatus_to_exitcode(status) == 0
    print(killed, (whole / "digest").read_text() == (broken / "digest").read_text())


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
