"""Only runs made under the protocol decide, at a look, in the order that was fixed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from depthpde.papers.confirmatory.conclusion import by_protocol, claim_of, stopped
from depthpde.papers.experiment import Case
from depthpde.records.evidence import gather
from depthpde.records.protocols.endpoints import ESCAPE
from depthpde.records.protocols.protocol import BaselineGate, Look, PlannedContrast, StudyProtocol
from depthpde.records.protocols.steps import GateResult
from depthpde.records.record import Cell, Grid
from depthpde.records.verdicts import Outcome
from papers.invented import evidence

FIRST = PlannedContrast(variant="wide", against="baseline", endpoint="accuracy")
SAME = PlannedContrast(
    variant="wide", against="twin", endpoint="accuracy", claimed="equivalent", margin=0.75
)
PROTOCOL = StudyProtocol(
    name="made",
    question="Is wide better?",
    tuning_seeds=(200,),
    test_seeds=tuple(range(8)),
    rates=(1e-3,),
    endpoints=("accuracy", "escape"),
    contrasts=(FIRST, SAME),
    looks=(Look(seeds=6, p=0.0113), Look(seeds=8, p=0.0392)),
)


def under(found, protocol=PROTOCOL, study=None):
    """Stamp invented runs with a protocol's digest."""
    digest = study or protocol.digest
    runs = {
        cell: {s: replace(r, config=dict(r.config) | {"study": digest}) for s, r in each.items()}
        for cell, each in found.runs.items()
    }
    return replace(found, runs=runs)


def conclude(found, protocol=PROTOCOL):
    return by_protocol(protocol)(Case(scale="mini", evidence=found))


def test_contrasts_are_judged_in_order_at_the_last_look_that_is_due():
    found = conclude(under(evidence({"wide": 3.0, "twin": 3.0}, name="made", seeds=8)))
    assert [each.verdict for each in found.claims] == [Outcome.SUPPORTED, Outcome.EQUIVALENT]
    assert [each.n for each in found.claims] == [16, 16]
    assert (
        f"protocol {PROTOCOL.digest}; look 2 of 2 at 8 test seeds, level 0.0392" in found.notes[0]
    )
    assert found.claims[0].claim == "wide is better than baseline in accuracy."


def test_a_look_takes_its_own_seeds_and_holds_its_level():
    found = evidence({"wide": 3.0, "twin": 3.0}, name="made", seeds=7)
    early = conclude(under(found))
    assert "look 1 of 2 at 6 test seeds" in early.notes[0]
    assert early.claims[0].n == 12
    plain = replace(PROTOCOL, looks=(Look(seeds=6, p=0.05), Look(seeds=8, p=0.05)))
    loose = conclude(under(found, plain), plain)
    assert early.claims[0].p == pytest.approx(loose.claims[0].p * 0.05 / 0.0113)


def test_rates_that_were_chosen_at_an_end_of_their_range_are_told():
    tried = replace(PROTOCOL, rates=(5e-4, 1e-3, 2e-3))
    found = under(evidence({"wide": 3.0, "twin": 3.0}, name="made", seeds=8), tried)
    rates = dict(zip(found.runs, (2e-3, 2e-3, 1e-3, 5e-4, 2e-3, 1e-3), strict=True))
    runs = {
        cell: {
            seed: replace(run, config=dict(run.config) | {"training": {"learning_rate": rate}})
            for seed, run in found.runs[cell].items()
        }
        for cell, rate in rates.items()
    }
    notes = conclude(replace(found, runs=runs), tried).notes
    assert any("rates chosen at the largest that was tried, 0.002: 3 of 6" in n for n in notes)
    assert any("rates chosen at the smallest that was tried, 0.0005: 1 of 6" in n for n in notes)
    one = replace(PROTOCOL, rates=(2e-3,))
    assert not any("rates chosen" in each for each in conclude(under(found, one), one).notes)


def test_a_contrast_that_is_not_shown_closes_the_gate_to_the_next():
    found = conclude(under(evidence({"wide": 0.0, "twin": 0.0}, name="made", seeds=8)))
    assert found.claims[0].verdict is not Outcome.SUPPORTED
    assert found.claims[1].verdict is Outcome.INCONCLUSIVE
    assert "not reached" in found.claims[1].finding


def test_runs_of_another_protocol_or_of_none_are_exploratory_and_shown_so():
    made = evidence({"wide": 3.0, "twin": 3.0}, name="made", seeds=8)
    bare = conclude(made)
    assert {each.verdict for each in bare.claims} == {Outcome.WAITING}
    assert bare.claims[0].n == 0
    assert "48 runs are left out: exploratory, made without a protocol" in bare.notes
    other = conclude(under(made, study="0" * 16))
    assert any("exploratory, made under protocol 0000000000000000" in each for each in other.notes)


def test_a_run_that_ended_without_a_test_result_keeps_no_look_waiting():
    found = under(evidence({"wide": 3.0, "twin": 3.0}, name="made", seeds=8))
    records = {run.id: run for runs in found.runs.values() for run in runs.values()}
    lost = found.runs["text-mini", "wide"][0]
    result = dict(lost.result) | {"test": None, "trivial": {"majority": 50.0}}
    records[lost.id] = replace(lost, result=result)
    cells = tuple(
        Cell(*cell, seed, run.id) for cell, runs in found.runs.items() for seed, run in runs.items()
    )
    look = conclude(gather(Grid("made", "?", "baseline", cells, {}), records)).notes[0]
    assert "look 2 of 2 at 8 test seeds" in look


def test_before_the_first_look_nothing_is_told():
    found = conclude(under(evidence({"wide": 9.0, "twin": 9.0}, name="made", seeds=5)))
    assert {each.verdict for each in found.claims} == {Outcome.WAITING}
    assert {each.effect for each in found.claims} == {None}
    assert {each.n for each in found.claims} == {10}, "five pairs on each of two tasks"
    assert "5 of 6 seeds: the first look has not come" in found.claims[0].finding


def test_an_experiment_that_a_gate_stopped_tested_nothing():
    gate = BaselineGate(task="text", endpoint="accuracy", least=58.0, words="a bag of bytes")
    found = stopped(PROTOCOL, [GateResult(gate, 57.0)])
    assert {each.verdict for each in found.claims} == {Outcome.INCONCLUSIVE}
    assert "the gate of text failed" in found.claims[0].finding
    assert found.notes[-1].endswith("57, above 58 (a bag of bytes): FAILED")


def test_a_claim_is_a_sentence_of_its_own_or_made_of_names():
    assert claim_of(replace(FIRST, words="It helps.")) == "It helps."
    assert claim_of(replace(FIRST, margin=2.0)).endswith("in accuracy by more than 2.")
    assert claim_of(SAME) == "wide and twin are the same in accuracy, within ±0.75."


def test_a_task_that_its_gate_left_out_leaves_its_contrast_untested():
    """The only task that is learned at once was left out: the report crashed."""
    first = replace(FIRST, endpoint=ESCAPE)
    protocol = replace(PROTOCOL, endpoints=(ESCAPE, "accuracy"), contrasts=(first,))
    found = conclude(
        under(evidence({"wide": 3.0, "twin": 3.0}, name="made", seeds=8), protocol), protocol
    )
    assert found.claims[0].verdict is Outcome.INCONCLUSIVE
    assert "no task is left that is learned at once" in found.claims[0].finding


def test_an_early_look_is_as_strict_about_what_is_the_same():
    """A claim of more whose difference is nothing ends as equivalent, at the level of its look."""
    made = evidence({"wide": 0.0, "twin": 0.0}, name="made", seeds=8, spread=1.0)
    verdicts = []
    for level in (0.05, 1e-4):
        at = replace(PROTOCOL, looks=(Look(seeds=6, p=1e-9), Look(seeds=8, p=level)))
        verdicts.append(conclude(under(made, at), at).claims[0].verdict)
    assert verdicts == [Outcome.EQUIVALENT, Outcome.INCONCLUSIVE]
