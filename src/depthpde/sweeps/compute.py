"""compute(plan, executor) → SweepOutcome: what demo, sweep and reproduce do with a plan."""

from __future__ import annotations

from collections.abc import Callable

from depthpde.sweeps.executor import Attempt, Executor, prepare_all
from depthpde.sweeps.grid import Plan
from depthpde.sweeps.sweep import SweepOutcome, sweep


def compute(
    plan: Plan,
    executor: Executor,
    *,
    retries: int = 2,
    retry_failed: bool = False,
    log: Callable[[str], None] = lambda line: None,
    callback: Callable[[Attempt | None], None] = lambda ended: None,
) -> SweepOutcome:
    """Write a plan's grid, prepare its tasks, and compute every run that has no record yet.

    A run whose data are missing waits: that is logged once a task before anything starts, counted
    in the outcome, and never noted as a failure. Where no run has its data, the reason is raised.

    Args:
        plan: Which runs.
        executor: Where; a remote one prepares the tasks where its runs are.
        retries: How often a run whose worker died is tried again.
        retry_failed: Try runs again that failed before.
        log: Called with what is prepared and what waits.
        callback: Called with every end, and None twice a second.
    """
    if plan.study is not None:
        raise ValueError(
            f"`plan` must have no protocol of its own, got that of {plan.name!r}; compute it stage "
            "by stage with `compute_study`"
        )
    results = executor.folders.results
    plan.write(results)
    runs = list(plan.runs)
    ready = prepare_all(runs, executor.folders, log) if executor.local else runs
    outcome = sweep(
        ready, executor, results, retries=retries, retry_failed=retry_failed, callback=callback
    )
    outcome.waiting = len(runs) - len(ready)
    return outcome
