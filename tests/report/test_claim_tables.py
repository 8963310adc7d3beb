"""Claims, and what stands beside them, as tables of every form."""

from __future__ import annotations

import csv

import pytest

from depthpde.records.findings import Findings, JudgedClaim
from depthpde.records.verdicts import Outcome
from depthpde.report.claim_tables import claim_tables
from depthpde.report.export import write_claims

CLAIM = JudgedClaim(
    claim="It helps.", finding="mean − baseline", verdict=Outcome.SMALLER, n=6, effect=1.6,
    interval=(1.1, 2.0), p=0.03125, least=0.59,
)  # fmt: skip
FOUND = Findings(
    name="placement",
    question="Where?",
    scale="mini",
    claims=(CLAIM,),
    tables={
        "by task": [{"task": "text", "gain": 1.5, "seen": True}, {"task": "image", "gain": None}],
        "a title " * 20: [{"value": 1}, {"value": 2.5}],
        "mixed": [{"value": 1}, {"value": "two"}],
        "nothing": [],
    },
    notes=("small models",),
)


def test_every_table_has_a_file_of_its_own_and_claims_come_first():
    tables = claim_tables([FOUND])["placement"]
    assert list(tables) == [
        "placement",
        "placement-by-task",
        f"placement-{'a-title-' * 5}",
        "placement-mixed",
    ]
    assert "smaller than claimed" in tables["placement"].text()
    assert "small models" in tables["placement"].markdown()


def test_titles_of_one_beginning_do_not_share_a_file():
    alike = {f"{'the same beginning ' * 5}{k}": [{"k": k}] for k in range(2)}
    tables = claim_tables([Findings(name="a", question="?", scale="mini", claims=(), tables=alike)])
    assert len(tables["a"]) == 3


def test_the_numbers_of_a_claim_are_unrounded(tmp_path):
    write_claims([FOUND], tmp_path)
    (row,) = csv.DictReader((tmp_path / "tables/claims/placement.csv").read_text().splitlines())
    assert (float(row["effect"]), float(row["low"]), float(row["high"])) == (1.6, 1.1, 2.0)
    assert (float(row["p"]), row["n"]) == (0.03125, "6")
    written = {each.name for each in (tmp_path / "tables/claims").iterdir()}
    assert {f"placement.{kind}" for kind in ("csv", "tex", "md", "txt")} <= written


def test_parquet_takes_every_column(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason="the tables extra is not installed")
    written = write_claims([FOUND], tmp_path, parquet=True)
    read = {p.stem: parquet.read_table(p).to_pylist() for p in written if p.suffix == ".parquet"}
    assert read["placement-by-task"] == [
        {"task": "text", "gain": 1.5, "seen": True},
        {"task": "image", "gain": None, "seen": None},
    ]
    assert read["placement-mixed"] == [{"value": "1"}, {"value": "two"}]
    assert [row["value"] for row in read[f"placement-{'a-title-' * 5}"]] == [1.0, 2.5]
