"""Experiment: question, variants, plan and claims of one experiment of the papers.

    experiment.plan(scale)  → runs → records        sweeps compute them
    experiment.judge(case)  → claims → Findings     by records, by weights, or by this machine

Importing an experiment imports no torch, so the report can judge records without it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from depthpde.papers.extra_tables import extra_tables
from depthpde.records.evidence import Evidence
from depthpde.records.findings import Findings, JudgedClaim
from depthpde.records.protocols.protocol import StudyProtocol
from depthpde.records.record import Record
from depthpde.sweeps.grid import Plan, Variant
from depthpde.sweeps.scale import Scale, arena_tasks, bases_of

if TYPE_CHECKING:
    from depthpde.runs.presets import Preset
    from depthpde.sweeps.executor import Folders

ORDER = (
    "the papers' claims are tested in their order, each a gate to the next, then the sceptics' in "
    "theirs; what no paper asks is corrected by Holm's method; orders and the margin of ±0.75 "
    "points were written down after these runs existed"
)
"""What a reader must know of claims that were judged by committed runs."""
DYNAMICS = "dynamics.json"
"""What was measured of a run's weights, beside its record."""
INFORMATION = "information.json"
"""Its sliced information plane, likewise."""
Log = Callable[[str], None]
Key = tuple[str, str, int]
"""Task, variant and seed."""
SIX_SEEDS: Mapping[Scale, int] = {Scale.QUICK: 2, Scale.MINI: 6, Scale.FULL: 6}


class JudgedBy(StrEnum):
    """What an experiment's claims are judged by."""

    RECORDS = "records"
    """The records alone: judged anew wherever they are read."""
    WEIGHTS = "weights"
    """The trained weights of all runs: needs the folders that hold them and their data."""
    MACHINE = "machine"
    """Measurements of this machine: there are no runs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """What one experiment is judged by, at one scale."""

    scale: str
    evidence: Evidence | None = None
    """The finished runs as numbers; given to experiments that read records."""
    tuning: Evidence | None = None
    """Those that chose rates, of an experiment under a protocol, where they are recorded."""
    records: Mapping[Key, Record] = field(default_factory=dict)
    """Every run; given to experiments that read weights."""
    plan: Plan | None = None
    """Where those runs come from."""
    folders: Folders | None = None
    """Where their weights and data lie."""
    rounds: int | None = None
    """How often a machine is measured; the experiment's own number for None."""
    log: Log = lambda line: None


@dataclass(frozen=True, kw_only=True, slots=True)
class Conclusion:
    """What an experiment makes of its case."""

    claims: Sequence[JudgedClaim]
    tables: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    """Title → rows of plain values, for what the claims rest on."""
    notes: Sequence[str] = ()
    """What a reader must know before believing the rest."""


Conclude = Callable[[Case], Conclusion]
Tables = Callable[[Evidence], Mapping[str, Sequence[Mapping[str, Any]]]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Experiment:
    """One experiment of the papers.

    plan = EXPERIMENTS["placement"].plan(Scale.QUICK, seeds=2, tasks=["listops-mini"])
    [each.label for each in plan.variants]
    """

    name: str
    """Of its grid, its findings and its place on the command line."""
    question: str
    conclude: Conclude
    """Judges its claims; `by_records` makes one out of claims about evidence."""
    judged_by: JudgedBy = JudgedBy.RECORDS
    variants: tuple[Variant, ...] = ()
    """What is compared; none where nothing is trained."""
    baseline: str = ""
    """Label of the variant that the others are compared with; the first if empty."""
    tasks: Callable[[Scale], Sequence[str]] = arena_tasks
    """The tasks of each scale."""
    bases: Callable[[Scale, Sequence[str]], Mapping[str, Preset]] = bases_of
    """Scale and tasks → what the variants start from, by task."""
    seeds: Mapping[Scale, int] = field(default_factory=lambda: SIX_SEEDS)
    """How many paired seeds each scale takes unless told otherwise."""
    rejudge: Callable[[Findings, Evidence | None], Findings] | None = None
    """Judges anew what was stored, as far as stored tables and records decide it; None where the
    stored claims are all there is."""
    fixed_tasks: bool = False
    """Whether the experiment is about its own tasks, so that no others can be chosen."""
    protocol: StudyProtocol | None = None
    """What is fixed before the first run; None where runs came before there was one. A smoke run
    (scale quick) is never made under it."""

    def plan(
        self,
        scale: Scale = Scale.MINI,
        *,
        seeds: int | Sequence[int] | None = None,
        tasks: Sequence[str] | None = None,
    ) -> Plan:
        """Return the runs that answer the question.

        Args:
            scale: How large; see `check_scale`.
            seeds: How many, or which; the scale's own number for None.
            tasks: Other tasks than the experiment's own.
        """
        if not self.variants:
            raise ValueError(
                f"`NAME` must be an experiment with runs, got {self.name}, which has none: it "
                f"measures this machine; use: depthpde reproduce {self.name}"
            )
        if tasks and self.fixed_tasks:
            raise ValueError(
                f"`--tasks` must be left out for {self.name}, got {', '.join(tasks)}; it has tasks "
                "of its own"
            )
        bound = self.protocol is not None and scale is not Scale.QUICK
        return Plan(
            name=self.name,
            question=self.question,
            variants=self.variants,
            bases=self.bases(scale, tasks or self.tasks(scale)),
            seeds=self.seeds[scale] if seeds is None else seeds,
            baseline=self.baseline,
            study=self.protocol if bound else None,
        )

    def check_scale(self, scale: Scale) -> None:
        """Refuse a scale that its protocol leaves no room for: called where a person chooses."""
        if self.protocol is not None and scale is Scale.FULL:
            raise ValueError(
                f"`--scale` must be left out for {self.name}, got {scale.value!r}: its protocol "
                f"fixes how large its runs are; {Scale.QUICK.value} is a smoke run without it"
            )

    def judge(self, case: Case) -> Findings:
        """Judge the claims, and return them with their tables and notes."""
        question = self.question if case.evidence is None else case.evidence.question
        return replace(self.findings(self.conclude(case), case.scale), question=question)

    def findings(self, found: Conclusion, scale: str) -> Findings:
        """Return a conclusion as findings of this experiment."""
        return Findings(
            name=self.name,
            question=self.question,
            scale=scale,
            claims=tuple(found.claims),
            tables=found.tables,
            notes=tuple(found.notes),
        )


def by_records(
    claims: Callable[[Evidence], Sequence[JudgedClaim]], tables: Tables = lambda evidence: {}
) -> Conclude:
    """Make the conclusion of an experiment whose records decide it.

    Args:
        claims: The finished runs of its grid → its claims, judged.
        tables: The same → tables of its own, before those that every grid has.
    """

    def conclude(case: Case) -> Conclusion:
        evidence = case.evidence
        assert evidence is not None, "an experiment that reads records is given evidence"
        notes = []
        if evidence.missing:
            asked = len(evidence.missing) + sum(map(len, evidence.runs.values()))
            notes.append(f"{len(evidence.missing)} of {asked} runs are missing")
        if case.scale != Scale.FULL:
            notes.append("small models on small tasks: no number of Long Range Arena itself")
        notes.append(ORDER)
        own = {title: rows for title, rows in tables(evidence).items() if rows}
        own |= extra_tables(evidence)
        return Conclusion(claims=claims(evidence), tables=own, notes=notes)

    return conclude
