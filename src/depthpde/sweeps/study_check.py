"""check_study(plan, results) → StudyCheck: did the runs follow the protocol, how far are they?"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from depthpde.records.protocols.protocol import EvidenceKind
from depthpde.records.protocols.sealing import changes, sealed
from depthpde.records.protocols.steps import STAGES, stage_grid
from depthpde.records.record import GRIDS, read_grid, read_records
from depthpde.sweeps.grid import Plan
from depthpde.sweeps.study import StudyStatus, planned_runs, study_status

OTHER_SETTINGS = "made under this protocol with settings that its plan does not have"


@dataclass(frozen=True, kw_only=True, slots=True)
class StudyCheck:
    """What a results folder says of a study."""

    name: str
    digest: str
    since: float | None
    """When the protocol was laid down, in seconds since 1970; None before the first run."""
    changed: tuple[str, ...]
    """Fields in which the protocol differs from the one that was laid down."""
    status: StudyStatus
    kinds: dict[EvidenceKind, int]
    """How many runs of its grids, and others with its digest, may be used for what."""
    reasons: dict[str, int]
    """Why runs are exploratory, and how many."""

    @property
    def followed(self) -> bool:
        """Whether nothing was changed, no gate ended it and no run is exploratory."""
        exploratory = self.kinds[EvidenceKind.EXPLORATORY]
        return not (self.changed or self.status.stopped or exploratory)

    def to_dict(self) -> dict[str, Any]:
        """Return the check as plain JSON values."""
        status = self.status
        return {
            "name": self.name,
            "digest": self.digest,
            "since": self.since,
            "changed": list(self.changed),
            "tuned": list(status.tuned),
            "rates": [
                {"task": task, "variant": variant, "rate": rate}
                for (task, variant), rate in status.rates.items()
            ],
            "gates": [str(each) for each in status.gates],
            "finished_seeds": status.finished,
            "look": None if status.look is None else status.look.seeds,
            "runs": {kind.value: count for kind, count in self.kinds.items()},
            "exploratory": self.reasons,
            "followed": self.followed,
        }

    def text(self) -> str:
        """Return the check as lines of text."""
        status, kinds = self.status, self.kinds
        laid = "not laid down yet"
        if self.since is not None:
            moment = datetime.fromtimestamp(self.since, UTC)
            which = "another of its name was laid down" if self.changed else "laid down"
            laid = f"{which} {moment:%Y-%m-%d %H:%M} UTC, before the first run in this folder"
        lines = [
            f"{self.name} · protocol {self.digest}, {laid}",
            f"tuning    {status.tuned[0]} of {status.tuned[1]} runs, "
            f"{len(status.rates)} rates chosen",
            *(f"gate      {each}" for each in status.gates),
            f"tests     {status.finished} seeds in every cell; "
            + ("no look is due" if status.look is None else f"look at {status.look.seeds} is due"),
            "runs      " + ", ".join(f"{count} {kind}" for kind, count in kinds.items()),
            *(f"          {count} exploratory: {why}" for why, count in self.reasons.items()),
        ]
        if self.changed:
            lines.append(
                f"CHANGED   {', '.join(self.changed)}: not the protocol that its runs were made "
                "under; give the changed one a new name and fresh test seeds"
            )
        return "\n".join(lines)


def check_study(plan: Plan, results: Path) -> StudyCheck:
    """Check the runs of a study's grids against its protocol; nothing is changed.

    Every finished record that carries the digest must be a run of the plan: one with another width,
    rate or number of updates shows that the plan was changed after it.

    Args:
        plan: The study's.
        results: The folder that holds its runs.
    """
    protocol, status = plan.study, study_status(plan, results)
    assert protocol is not None, "refused by study_status"
    there = sealed(results, protocol.name)
    records = read_records(results).found
    kinds = dict.fromkeys(EvidenceKind, 0)
    reasons: Counter[str] = Counter()
    planned = planned_runs(plan, results)
    stamped = [run for run, each in records.items() if each.config.get("study") == protocol.digest]
    for run in dict.fromkeys([*_runs_of(plan, results), *stamped]):
        record = records.get(run)
        if record is None or record.result is None:
            continue
        kind, why = protocol.evidence(record.config)
        if kind is not EvidenceKind.EXPLORATORY and run not in planned:
            kind, why = EvidenceKind.EXPLORATORY, OTHER_SETTINGS
        kinds[kind] += 1
        if kind is EvidenceKind.EXPLORATORY:
            reasons[why] += 1
    return StudyCheck(
        name=protocol.name,
        digest=protocol.digest,
        since=None if there is None else there.since,
        changed=() if there is None else tuple(changes(there.protocol, protocol)),
        status=status,
        kinds=kinds,
        reasons=dict(reasons),
    )


def _runs_of(plan: Plan, results: Path) -> list[str]:
    """Return the runs of a study's grids as the folder has them, whoever wrote them."""
    found: dict[str, None] = {}
    for name in (plan.name, *(stage_grid(plan.name, stage) for stage in STAGES)):
        path = results / GRIDS / f"{name}.json"
        if path.is_file():
            found |= dict.fromkeys(cell.run for cell in read_grid(path).cells)
    return list(found)
