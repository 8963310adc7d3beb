"""One run by several processes: `torchrun` starts them, and they share every batch.

The leader computes and records the run as one process alone would; the others do their share of
every batch and write nothing. A run that several began may be finished by one, and the reverse.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
import torch.distributed as dist

from depthpde.data.reader import read_split
from depthpde.records.record import RESULT, Record, run_folder
from depthpde.runs.execute import ensure_prepared, execute
from depthpde.runs.run import RunConfig
from depthpde.runs.stages import StageCallback, run_stages
from depthpde.threads import threads
from depthpde.training.processes import Processes


def own_device(device: str) -> str:
    """Return the device of this process: of those that `torchrun` started each has its own GPU.

    Args:
        device: Where the tensors of all of them live.
    """
    if _started() == 1 or not device.startswith("cuda"):
        return device
    rank, known = int(os.environ["LOCAL_RANK"]), torch.cuda.device_count()
    if device != "cuda":
        raise ValueError(
            f"`device` must be 'cuda' for several processes, got {device!r}: each takes a GPU of "
            "its own; choose among them with CUDA_VISIBLE_DEVICES"
        )
    if rank >= known:
        raise ValueError(
            f"`device` must have a GPU for every process, got {known} for process {rank + 1} of "
            f"this machine; start {known} with --nproc-per-node, or use --device cpu"
        )
    return f"cuda:{rank}"


@contextmanager
def joined(device: str) -> Iterator[Processes]:
    """Join the processes that `torchrun` started, until the block ends; alone without it.

    Args:
        device: Where this process's model lives: ``nccl`` joins GPUs, ``gloo`` all else.
    """
    if _started() == 1:
        yield Processes()
        return
    if device.startswith("cuda"):
        torch.cuda.set_device(device)  # messages between the processes go through it
    dist.init_process_group("nccl" if device.startswith("cuda") else "gloo")
    try:
        yield Processes.joined()
    finally:
        dist.destroy_process_group()


def execute_distributed(
    run: RunConfig,
    results: Path,
    *,
    data: Path | None = None,
    prepared: Path | None = None,
    device: str = "cpu",
    callback: StageCallback | None = None,
    log: Callable[[str], None] = lambda line: None,
) -> Record | None:
    """Compute one run by all joined processes; `execute`, where there is one only.

    Args:
        run: What to compute.
        results: The results folder.
        data: Folder with the official files.
        prepared: Folder of prepared tasks.
        device: Where this process's model lives; see `own_device`.
        callback: Called at the start of every stage; the leader's returns that of its updates.
        log: Called with anything unusual.

    Returns:
        The record for the leader, None for the others.
    """
    processes = Processes.joined()
    if processes.count > 1:
        place = ensure_prepared(run, data, prepared, log) if processes.leads else None
        done = (run_folder(results, run.id) / RESULT).is_file()
        (finished,) = processes.from_leader([float(done)])  # the others wait here for the data
        if not processes.leads:
            if not finished:
                place = ensure_prepared(run, data, prepared)
                _assist(run, run_folder(results, run.id), place, device)
            return None
    return execute(
        run, results, data=data, prepared=prepared, device=device, callback=callback, log=log
    )


def _started() -> int:
    """Return how many processes `torchrun` started; 1 without it."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def _assist(run: RunConfig, folder: Path, place: Path, device: str) -> None:
    """Do a share of every batch of the stages that the leader goes through; it alone logs."""
    splits = {name: read_split(place, name) for name in ("train", "validation")}
    model = run.build().to(device)
    with threads(run.threads or 1):
        run_stages(run, model, splits, folder, callback=lambda *stage: lambda history, now: None)
