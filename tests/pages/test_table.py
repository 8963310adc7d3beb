"""A table in every notation: what it holds is laid out, escaped and never lost."""

import csv
import html
import io
import xml.etree.ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from depthpde.pages.table import Table, TableEntry

HOSTILE = Table(
    title="<script>",
    heads=("", "a|b"),
    rows=((TableEntry("50 % & $x_1$ \\ {~^} #"), TableEntry("−0.5 *", strong=True)),),
    notes=("Δ < 1",),
)


def test_markdown_and_latex_escape_what_records_say():
    markdown = HOSTILE.markdown()
    assert r"\<script\>" in markdown
    assert r"a\|b" in markdown
    assert r"**−0.5 \***" in markdown
    latex = HOSTILE.latex()
    row = r"50 \% \& \$x\_1\$ \textbackslash{} \{\textasciitilde{}\textasciicircum{}\} \#"
    assert f"{row} & \\textbf{{$-$0.5 $^{{*}}$}} \\\\" in latex
    assert r"\par\small $\Delta$ $<$ 1" in latex


def test_a_short_table_leaves_out_notes_and_never_warnings():
    table = Table(title="t", heads=("",), rows=(), notes=("a note",), warnings=("few seeds",))
    assert "a note" in table.markdown()
    assert "a note" not in table.markdown(notes=False)
    assert "Warning: few seeds" in table.markdown(notes=False)


def test_a_short_table_says_in_its_first_head_what_its_title_ends_with():
    table = Table(title="grid · tasks · 6 paired seeds", heads=("", "x"), rows=())
    assert table.markdown(notes=False).startswith("| 6 paired seeds | x |")
    assert table.markdown().startswith("**grid · tasks · 6 paired seeds**")


def test_a_spreadsheet_sees_no_formula():
    table = Table(title="", heads=("", "x"), rows=((TableEntry("=1+1"), TableEntry("@cmd")),))
    assert table.csv() == ",x\n'=1+1,'@cmd\n"


PLAIN = Table(
    title="means",
    heads=("variant", "text", "mean"),
    rows=(
        (TableEntry("baseline"), TableEntry("61.0"), TableEntry("61.0", cell=("", "baseline"))),
        (
            TableEntry("after ffn", title="n = 6"),
            TableEntry("62.5", cell=("text", "after ffn"), strong=True),
            TableEntry("", title="no pair"),
        ),
    ),
    notes=("paired by seed",),
    warnings=("few seeds",),
)


def read_html(table, **chosen):
    return ET.fromstring(f"<div>{table.html(**chosen)}</div>")


def test_a_spreadsheet_sees_no_formula_in_a_head_either():
    table = Table(title="", heads=("=cmd()", "-x"), rows=())
    assert table.csv() == "'=cmd(),'-x\n"


def test_text_lines_up_names_left_and_numbers_right():
    title, *lines = PLAIN.text().splitlines()
    assert title == "means"
    assert lines[0] == "variant    text  mean"
    assert lines[1] == "baseline   61.0  61.0"
    assert lines[2] == "after ffn  62.5"
    assert lines[3:] == ["paired by seed", "warning: few seeds"]


def test_a_page_gets_a_table_that_can_be_read_aloud_and_scrolled_by_keys():
    root = read_html(PLAIN)
    region = root.find("div")
    assert (region.get("role"), region.get("tabindex"), region.get("aria-label")) == (
        "region", "0", "means",
    )  # fmt: skip
    assert [each.get("scope") for each in root.iter("th")] == ["col"] * 3 + ["row"] * 2
    assert root.find(".//caption").text == "means"
    strong = [each.text for each in root.iter("td") if "strong" in each.get("class")]
    assert strong == ["62.5"]
    assert [each.get("class") for each in root.iter("p")] == ["warned", "notes"]
    assert [each.text for each in root.iter("p")] == ["⚠ few seeds", "paired by seed"]


def test_numbers_lead_where_they_are_told_to_and_nowhere_otherwise():
    root = read_html(PLAIN, link=lambda cell: f"#{cell[0]}/{cell[1]}")
    assert [each.get("href") for each in root.iter("a")] == ["#/baseline", "#text/after ffn"]
    assert not list(read_html(PLAIN).iter("a"))


def test_what_stands_behind_a_number_is_seen_when_pointing_at_it():
    titles = [each.get("title") for each in read_html(PLAIN).iter() if each.get("title")]
    assert titles == ["n = 6", "no pair"]


@given(st.text(), st.text())
def test_any_name_is_text_on_a_page(name, number):
    table = Table(title=name, heads=(name, number), rows=((TableEntry(name), TableEntry(number)),))
    allowed = {"div", "table", "caption", "thead", "tbody", "tr", "th", "td"}
    assert {each.tag for each in read_html(table).iter()} <= allowed


def test_a_script_in_a_record_is_written_out():
    page = HOSTILE.html()
    assert "<script" not in page
    assert html.escape("<script>") in page


@given(st.lists(st.text(st.characters(exclude_categories=["Cs", "Cc"])), min_size=2, max_size=2))
def test_csv_gives_back_what_it_was_given(names):
    table = Table(title="", heads=("a", "b"), rows=(tuple(TableEntry(each) for each in names),))
    (row,) = csv.DictReader(io.StringIO(table.csv()))
    given_back = [value.removeprefix("'") for value in row.values()]
    assert given_back == [each.removeprefix("'") for each in names]


def test_tidy_numbers_go_to_machines_unrounded():
    tidy = ({"task": "text", "mean": 1 / 3},)
    assert Table(title="", heads=("x",), rows=(), tidy=tidy).csv() == f"task,mean\ntext,{1 / 3}\n"


def test_a_table_without_rows_is_still_one_in_every_notation():
    empty = Table(title="t", heads=("variant", "mean"), rows=())
    assert empty.csv() == "variant,mean\n"
    assert empty.text() == "t\nvariant  mean\n"
    assert "| variant | mean |" in empty.markdown()
    assert r"\begin{tabular}{lr}" in empty.latex()
    assert read_html(empty).find(".//tbody") is None
