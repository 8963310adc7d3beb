"""One row an experiment under protocol; only its own records count."""

from collections import Counter
from dataclasses import replace

import pytest

from depthpde.papers.experiment import Case
from depthpde.papers.protocol_table import (
    HELD,
    NOT_YET,
    at_last_look,
    awaited_look,
    protocol_rows,
    protocol_table,
)
from depthpde.papers.registry import EXPERIMENTS, experiment_of, judge_all
from depthpde.records.protocols.protocol import Look
from depthpde.report.grid_section import write_grid_section
from depthpde.report.sentences import judge
from depthpde.report.tables import paired_table
from papers.confirmatory.test_conclusion import under
from papers.invented import evidence

STENCIL = EXPERIMENTS["stencil"]


def made(name="stencil", seeds=2):
    """Invent test seeds of every cell."""
    effects = {each.label: 1.0 for each in STENCIL.variants[1:]}
    found = evidence(effects, name=name, seeds=seeds, tasks=STENCIL.tasks("mini"))
    runs = {
        cell: {
            100 + seed: replace(run, config=dict(run.config) | {"seed": 100 + seed})
            for seed, run in each.items()
        }
        for cell, each in found.runs.items()
    }
    return replace(found, runs=runs)


def row(grids, findings=()):
    (found,) = (
        each for each in protocol_rows(grids, findings) if each["experiment"] == "`stencil`"
    )
    return found


def test_every_experiment_with_a_protocol_has_a_row_and_no_other():
    rows = protocol_rows([], [])
    assert len(rows) == sum(each.protocol is not None for each in EXPERIMENTS.values()) >= 13
    assert {each["state"] for each in rows} == {"not yet run"}
    assert {each["verdict"] for each in rows} == {""}


def test_records_under_the_protocol_are_counted_and_others_are_not():
    cells = len(STENCIL.variants) * 4
    ours = under(made(), STENCIL.protocol)
    assert row([ours])["state"] == f"recorded {2 * cells} of {6 * cells}"
    assert row([made()])["state"] == "not yet run"
    assert row([under(made(), STENCIL.protocol, study="0" * 16)])["state"] == "not yet run"
    assert row([made("stencil.tuning")])["state"] == f"tuning; recorded 0 of {6 * cells}"


def test_the_verdict_is_that_of_its_findings_and_there_is_none_before_a_look():
    for seeds in (2, 6):
        ours = under(made(seeds=seeds), STENCIL.protocol)
        found = STENCIL.judge(Case(scale="mini", evidence=ours))
        counts = Counter(str(each.verdict) for each in found.claims)
        wanted = ", ".join(f"{word} {n}" if n > 1 else word for word, n in counts.items())
        assert row([ours], [found])["verdict"] == (
            "none before its first look" if seeds == 2 else wanted
        )
    assert row([made()])["verdict"] == ""


def test_what_has_begun_is_a_table_and_the_rest_one_line():
    nothing = protocol_table(protocol_rows([], []))
    assert nothing.count("\n") == 0
    assert f"`stencil` (`{STENCIL.protocol.digest}`)" in nothing
    begun = protocol_table(protocol_rows([under(made(), STENCIL.protocol)], []))
    assert "| `stencil` |" in begun
    *_, waiting = begun.splitlines()
    assert NOT_YET in waiting
    assert "`stencil`" not in waiting


def test_a_look_is_awaited_until_its_seeds_are_whole_in_every_cell():
    protocol = STENCIL.protocol
    assert awaited_look(under(made(seeds=2), protocol)) is protocol
    assert awaited_look(under(made(seeds=6), protocol)) is None
    assert awaited_look(made(seeds=2)) is None  # of no protocol
    assert awaited_look(under(made("placement"), protocol)) is None


def test_a_grid_of_ones_own_waits_for_the_look_of_the_protocol_that_it_brings():
    own = replace(STENCIL.protocol, name="mine")
    for seeds, waits in ((2, own), (6, None)):
        found = replace(under(made("mine", seeds), own), protocol=own)
        assert awaited_look(found) is waits
        assert (judge(found)[0].strong == "Not judged yet:") is (waits is not None)
        (judged,) = judge_all([found], [])
        assert (judged.name, len(judged.claims)) == ("mine", len(own.contrasts))
        assert ("first look has not come" in judged.claims[0].finding) is (waits is not None)
    assert judge_all([made("mine")], []) == ()


def test_a_grid_of_ones_own_with_an_experiments_name_is_judged_by_its_own_protocol():
    own = replace(STENCIL.protocol, contrasts=STENCIL.protocol.contrasts[:1], stopping="mine")
    found = replace(under(made(), own), protocol=own)
    assert experiment_of(found).protocol is own
    (judged,) = judge_all([found], [])
    assert len(judged.claims) == 1
    assert own.digest in judged.notes[0]
    assert judged.scale == "own"
    assert row([found, made("stencil.tuning")], [judged])["state"] == NOT_YET
    ours = replace(under(made(), STENCIL.protocol), protocol=STENCIL.protocol)
    for grid in (ours, made()):
        assert experiment_of(grid) is STENCIL
    assert experiment_of(made("mine")) is None


def test_a_part_of_a_grid_whose_cells_are_whole_waits_with_the_rest():
    found = under(made(seeds=6), STENCIL.protocol)
    last = (STENCIL.tasks("mini")[-1], found.variants[-1])
    runs = {
        cell: dict(list(each.items())[: 3 if cell == last else 6])
        for cell, each in found.runs.items()
    }
    found = replace(found, runs=runs)
    part = found.select(variants=found.variants[1:3])
    assert awaited_look(found) is awaited_look(part) is STENCIL.protocol
    assert {row[-1].text for row in paired_table(part).rows[1:]} == {"…"}


def test_a_page_leads_with_the_tests_of_the_protocol_in_their_order():
    ours = under(made(seeds=6), STENCIL.protocol)
    first, second, *_ = found = judge(ours)
    claims = STENCIL.judge(Case(scale="mini", evidence=ours)).claims
    assert len(found) == len(claims) == 4
    assert (first.mark, first.strong) == ("=", "Equivalent:")  # invented: all are one point better
    assert first.text.startswith(f"“{claims[0].claim.rstrip('.')}”: found ")
    assert "not reached by the order of tests" in second.text
    assert "not reached" not in first.text
    assert "Holm" not in " ".join(each.text for each in found)


@pytest.mark.parametrize("seeds", [2, 6])
def test_a_page_judges_nothing_before_the_look(seeds):
    ours = under(made(seeds=seeds), STENCIL.protocol)
    first, table = judge(ours)[0], paired_table(ours)
    shown = [row[-1].text for row in table.rows[1:]]
    early = seeds == 2
    assert (first.strong == "Not judged yet:") is early
    assert (f"{STENCIL.protocol.digest}, judges from 6 seeds on" in first.text) is early
    assert all((each == "…") is early for each in shown)
    assert ("nothing is compared before the first look, at 6 seeds" in table.notes) is early
    assert bool(table.tidy) is not early
    assert all((row[1].text == "…") is early for row in table.rows), "no mean on its way either"


def test_before_the_look_a_page_has_no_mean_no_curve_and_no_p_of_any_variant():
    ours = under(made(seeds=2), STENCIL.protocol)
    section = write_grid_section(ours)
    assert section.evidence is ours, "the runs themselves are listed"
    assert section.figures == section.curves == section.depth == {}
    assert {each.summary for each in section.variant_sections} == {"no pair of runs to show yet"}
    assert not any(each.figures for each in section.variant_sections)
    assert "Not judged yet:" in {each.strong for each in section.verdict}
    whole = write_grid_section(under(made(seeds=6), STENCIL.protocol))
    assert {"forest", "heat-map"} <= set(whole.figures)
    assert all("p (Holm)" in each.summary for each in whole.variant_sections)


def test_between_two_looks_the_runs_of_the_next_are_held_back():
    looks = (Look(seeds=2, p=0.0294), Look(seeds=6, p=0.05))
    own = replace(STENCIL.protocol, looks=looks, name="mine")
    for seeds, shown in ((1, 0), (2, 2), (4, 2), (6, 6)):
        found = replace(under(made("mine", seeds), own), protocol=own)
        compared = at_last_look(found)
        assert {len(each) for each in compared.runs.values()} == ({shown} if shown else set())
        held = [each for each in compared.missing if each.state == HELD]
        assert len(held) == (seeds - shown) * len(found.runs)
        part = at_last_look(found.select(variants=found.variants[1:2]))
        assert {len(each) for each in part.runs.values()} == ({shown} if shown else set())
    assert at_last_look(made()).runs == made().runs, "without a protocol nothing is held back"


def test_runs_that_choose_a_rate_are_shown_without_p():
    tuning = made("stencil.tuning", seeds=6)
    assert {row[-1].text for row in paired_table(tuning).rows[1:]} == {"…"}
    assert any(
        each.startswith("no p: these runs choose a rate") for each in paired_table(tuning).notes
    )
    assert not any("p (Holm)" in e.summary for e in write_grid_section(tuning).variant_sections)
