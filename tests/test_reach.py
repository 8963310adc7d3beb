"""The tables of docs/reach.md and docs/audit.md: a type that the library or we lose is noticed."""

import sys
from pathlib import Path

import pytest
import torch
import transformers

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "benchmarks"))

import audit as audit_table  # noqa: E402
import reach  # noqa: E402
from tiny_models import build, model_types  # noqa: E402

sys.path.pop()  # benchmarks/doctor.py would hide tests/doctor, which has no __init__.py

REACH = reach.PAGE.read_text(encoding="utf-8")
AUDIT = audit_table.PAGE.read_text(encoding="utf-8")
LISTED = {each[:2]: each for each in model_types()}
SLICE = [("causal", "gpt_neox"), ("causal", "bloom")]


@pytest.fixture(autouse=True)
def threads():
    """Each examination takes one core; leave the others' tests what they had."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def lines(page: str, begin: str) -> list[list[str]]:
    """The rows of a page's table, cell by cell."""
    rows = page.split(begin)[-1].split("### Every type")[1].splitlines()
    cells = [[each.strip() for each in row.strip("| ").split("|")] for row in rows]
    return [row for row in cells if tuple(row[:2]) in LISTED]


def test_the_tables_name_the_versions_that_they_were_made_with():
    for page, begin in ((REACH, reach.BEGIN), (AUDIT, audit_table.BEGIN)):
        made = page.split(begin)[1].strip().splitlines()[0]
        assert made.startswith(f"transformers {transformers.__version__}, torch ")


def test_each_verb_reaches_nine_tenths_of_the_types_that_were_tried():
    rows = lines(REACH, reach.BEGIN)
    for k, verb in enumerate(reach.VERBS, start=2):
        reached = sum(row[k] != "–" for row in rows)
        assert reached >= reach.REACHED * len(rows), verb


@pytest.mark.parametrize("key", SLICE, ids="-".join)
def test_no_type_of_the_table_is_lost(key):
    row = reach.examine(*LISTED[key])
    assert not row.crash
    assert reach.lost([row], REACH) == []


def test_a_lost_type_is_named():
    row = reach.Row("causal", "gpt2", positions=("after_ffn",), reached={"insert": True})
    (output,) = reach.lost([row], REACH)
    assert output.startswith("causal gpt2: 7 of 7 ✓ ✓ ✓ → 1 of 7 – – –")


def test_rows_made_anew_stand_among_those_of_the_page():
    made = REACH.split(reach.BEGIN)[1].split(reach.END)[0].strip()
    assert reach.table(reach.merged([], REACH)).strip() == made
    row = reach.Row("causal", "gpt2", positions=("after_ffn",), reached={"insert": True})
    assert "| causal | gpt2 | 1 of 7 | – | – | – |" in reach.table(reach.merged([row], REACH))


@pytest.mark.parametrize("key", SLICE, ids="-".join)
def test_the_audit_says_what_its_table_says(key):
    row = audit_table.examine(*LISTED[key])
    assert not row.crash
    assert audit_table.changed([row], AUDIT) == []


@pytest.mark.drill
def test_every_type_of_the_table_can_still_be_built():
    failed = {}
    for row in lines(AUDIT, audit_table.BEGIN):
        try:
            build(*LISTED[tuple(row[:2])])
        except ValueError as error:
            failed[tuple(row[:2])] = str(error)
    assert not failed
