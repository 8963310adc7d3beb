"""The sliced information plane of recorded runs, estimated from what their records allow.

    python benchmarks/information.py RESULTS --data FOLDER --prepared FOLDER [--weights FOLDER]

Untrained networks are made again from their configs. Trained ones need weights: those beside the
record, or those under --weights, a results folder in which the same runs were computed again; they
count only if they give the record's predictions to the byte. Writes RUNS/ID/information.json, which
`depthpde report` reads; what is there already is not estimated again.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from depthpde.papers.ablation.variants import LOOKS, TRANSFORMER
from depthpde.papers.measurements.observation import Observation
from depthpde.papers.measurements.sliced_plane import sliced_plane
from depthpde.records.record import read_grids, read_record, run_folder
from depthpde.sweeps.executor import Folders
from depthpde.sweeps.scale import Scale


def main() -> None:
    """Estimate, and print the last layer of every run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("results", type=Path)
    parser.add_argument("--data", type=Path, help="folder with the official files")
    parser.add_argument("--prepared", type=Path, help="folder of prepared tasks")
    parser.add_argument("--weights", type=Path, help="results folder of the runs computed again")
    parser.add_argument("--grid", default="stabilization")
    parser.add_argument("--tasks", nargs="*", help="of the grid; every one unless given")
    given = parser.parse_args()
    folders = Folders(given.results, given.data, given.prepared)
    look = Observation(**LOOKS[Scale.MINI])
    for cell in read_grids(given.results).by_name[given.grid].cells:
        if not cell.variant.startswith(TRANSFORMER) or cell.task not in (
            given.tasks or [cell.task]
        ):
            continue
        record = read_record(run_folder(given.results, cell.run))
        found = sliced_plane(record, folders, look, weights=given.weights)
        if found is not None:
            said = [
                "-" if found[when] is None else f"{found[when][-1]['label']['value']:.4f}"
                for when in ("start", "end")
            ]
            print(
                cell.task, cell.variant, cell.seed, "SI(T;Y) at the last layer:", *said, flush=True
            )


if __name__ == "__main__":
    main()
