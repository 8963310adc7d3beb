"""Reproduction: an experiment that measures more than its runs, from a scale to its findings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from depthpde.data.catalog import default_data
from depthpde.errors import check_one_of
from depthpde.records.findings import Findings, check_scale
from depthpde.records.record import is_recorded
from depthpde.sweeps.executor import Folders
from depthpde.sweeps.grid import Plan
from depthpde.sweeps.scale import Scale

Log = Callable[[str], None]


class Planner(Protocol):
    """Makes the plan of the runs."""

    def __call__(self, scale: Scale, *, seeds: int | None) -> Plan:
        """Return the plan; the scale's own number of seeds for None."""


class Answer(Protocol):
    """Computes what is missing of a plan, measures, judges, and stores the findings."""

    def __call__(
        self,
        made: Plan,
        folders: Folders,
        scale: Scale,
        *,
        workers: int,
        log: Log,
        device: str = "cpu",
    ) -> Findings:
        """Return the findings."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """A plan of runs and the answer that is made out of them."""

    plan: Planner
    answer: Answer

    def __call__(
        self,
        results: Path,
        *,
        scale: str = "mini",
        seeds: int | None = None,
        workers: int = 1,
        log: Log = lambda line: None,
        data: Path | None = None,
        prepared: Path | None = None,
        device: str = "cpu",
    ) -> Findings:
        """Compute what is missing, measure, judge, and store the findings.

        Args:
            results: The results folder; what it holds already is not computed again.
            scale: quick, mini or full.
            seeds: How many; the scale's own number unless given.
            workers: Processes.
            log: Told how it goes.
            data: Folder with the official files; looked for where the environment says if None.
            prepared: Folder of prepared tasks.
            device: Where a run's tensors live; measures are taken on the CPU.
        """
        scale = check_one_of("scale", scale, Scale)
        made = self.plan(scale, seeds=seeds)
        _check_whole(made, results)
        check_scale(results, made.name, scale.value)
        folders = Folders(results, data or default_data(), prepared)
        return self.answer(made, folders, scale, workers=workers, log=log, device=device)

    def judge(
        self,
        results: Path,
        *,
        scale: str = "mini",
        seeds: int | None = None,
        log: Log = lambda line: None,
        data: Path | None = None,
        prepared: Path | None = None,
    ) -> Findings:
        """Measure and judge what is recorded, and store the findings; train nothing.

        Args:
            results: The results folder, with every run of the plan.
            scale: quick, mini or full.
            seeds: How many; the scale's own number unless given.
            log: Told how it goes.
            data: As for a call.
            prepared: As for a call.
        """
        made = self.plan(check_one_of("scale", scale, Scale), seeds=seeds)
        lacking = [each for each in made.runs if not is_recorded(results, each.id)]
        if lacking:
            raise ValueError(
                f"{results} must hold all {len(made.runs)} runs of {made.name!r} at this scale and "
                f"number of seeds, got {len(made.runs) - len(lacking)}; compute the rest without "
                f"--judge, or with: depthpde sweep {made.name} --scale {scale}"
            )
        return self(results, scale=scale, seeds=seeds, log=log, data=data, prepared=prepared)


def _check_whole(made: Plan, results: Path) -> None:
    """Refuse to answer by a part of what is recorded: its findings would replace the whole's."""
    there = {cell.seed for cell in made.grid_in(results).cells}
    asked = {cell.seed for cell, _ in made.cells}
    if there - asked:
        raise ValueError(
            f"`seeds` must be no fewer than {results} holds for {made.name!r}, {len(there)}, got "
            f"{len(asked)}; choose another folder with --out"
        )
