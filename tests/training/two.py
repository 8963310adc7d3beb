"""One of two processes that train together; what it saw goes to a JSON file."""

import json
import os
import signal
import sys
from pathlib import Path

import torch
import torch.distributed as dist

from depthpde.training.fingerprint import weights_digest
from depthpde.training.loop import train
from training.counting import make_config, make_model, make_split

CONFIG = make_config(updates=20, accumulate=2, log_every=1)
ONE_ROW = make_config(updates=8, batch_size=1, log_every=1)


def build(seed=0):
    return make_model(seed, dropout=0.0).double()


def run(config, **more):
    model = build()
    history = train(model, make_split(), config, validation=make_split("validation", 60), **more)
    return model, history


def main(folder: Path, rank: int) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    output = {}
    model, history = run(CONFIG)
    output["whole"] = history.to_dict() | {"digest": weights_digest(model.state_dict())}
    output["one row"] = run(ONE_ROW)[1].to_dict()

    def stop(history, point):
        if history.update == 9 and rank == 1:
            os.kill(os.getpid(), signal.SIGTERM)

    output["stopped"] = run(CONFIG, folder=folder / "run", callback=stop)[1].to_dict()
    try:
        train(build(seed=rank), make_split(), CONFIG)
    except ValueError as error:
        output["refused"] = str(error)
    (folder / f"{rank}.json").write_text(json.dumps(output))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
