import csv
import sys
import xml.etree.ElementTree as ET

import pytest

from depthpde.report.export import to_pdf, write_figures, write_tables
from depthpde.report.grid_section import write_grid_section
from depthpde.report.provenance import trace


@pytest.fixture(scope="module")
def sections(evidence):
    return [write_grid_section(evidence)]


@pytest.fixture(scope="module")
def origin(sections):
    return trace({}, [each.evidence for each in sections])


def test_tables_are_written_in_four_forms(sections, origin, tmp_path):
    written = write_tables(sections, tmp_path, origin)
    forms = [
        f"{name}.{kind}"
        for name in ("placement", "placement-cost")
        for kind in ("csv", "md", "tex", "txt")
    ]
    assert sorted(each.name for each in written) == sorted([*forms, "placement-runs.csv"])
    assert (tmp_path / "tables" / "placement.txt").read_text() == sections[0].table.text()


def test_the_list_of_runs_is_a_table_too(sections, origin, tmp_path):
    write_tables(sections, tmp_path, origin)
    text = (tmp_path / "tables" / "placement-runs.csv").read_text()
    rows = list(csv.DictReader(text.splitlines()))
    runs = {run.id for cell in sections[0].evidence.runs.values() for run in cell.values()}
    assert {row["run"] for row in rows} == runs


def test_parquet_holds_the_numbers_of_the_csv(sections, origin, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason="the tables extra is not installed")
    write_tables(sections, tmp_path, origin, parquet=True)
    read = parquet.read_table(tmp_path / "tables" / "placement.parquet").to_pylist()
    assert read == [dict(row) for row in sections[0].table.tidy]


def test_parquet_without_its_library_says_what_to_install(sections, origin, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        ValueError, match=r"`--parquet` needs pyarrow.*pip install .depthpde\[tables\]"
    ):
        write_tables(sections, tmp_path, origin, parquet=True)


def test_figures_are_files_of_their_own(sections, tmp_path):
    written = write_figures(sections, tmp_path)
    names = {each.name for each in written}
    assert {
        "placement-diagram.svg", "placement-forest.svg", "placement-forest-by-task.svg",
        "placement-heat-map.svg", "placement-curves-listops-mini.svg",
        "placement-depth-drift-cosine.svg", "placement-after-embedding-ratios.svg",
        "placement-after-embedding-transfer.svg", "placement-after-embedding-bands.svg",
    } <= names  # fmt: skip
    for each in written:
        ET.parse(each)


def test_pdf_holds_no_clock(sections):
    pytest.importorskip("cairosvg", reason="the paper extra is not installed")
    from depthpde.pages.style import standalone

    figure = standalone(sections[0].figures["forest"])
    made = to_pdf(figure)
    assert made.startswith(b"%PDF")
    assert b"(D:19700101000000" in made
    assert made == to_pdf(figure)


def test_pdf_goes_beside_each_figure_where_asked_for(sections, tmp_path):
    pytest.importorskip("cairosvg", reason="the paper extra is not installed")
    written = write_figures(sections, tmp_path, pdf=True)
    kinds = [each.suffix for each in written]
    assert kinds.count(".pdf") == kinds.count(".svg") > 10


def test_without_the_paper_extra_it_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "cairosvg", None)
    with pytest.raises(ValueError, match=r"`--paper` needs cairosvg.*depthpde\[paper\]"):
        to_pdf("<svg/>")
