import io
import json
import subprocess
import sys

import pytest

from depthpde.cli.main import main
from depthpde.cli.reading_bar import reading_bar
from report import synthesis


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    synthesis.write_placement(
        folder, tasks=["text-mini"], variants=["baseline", "after_ffn"], seeds=6
    )
    return folder


def test_prints_the_table_the_verdict_and_where_the_page_lies(results, tmp_path, capsys):
    assert main(["report", str(results), "--out", str(tmp_path / "out")]) == 0
    output = capsys.readouterr().out
    assert output.startswith("placement · text-mini · 6 paired seeds\n")
    assert f"page    {tmp_path / 'out' / 'report.html'}" in output
    assert (tmp_path / "out" / "report.html").read_text().startswith("<!DOCTYPE html>")
    assert (tmp_path / "out" / "tables" / "placement.tex").is_file()
    assert (tmp_path / "out" / "figures" / "placement-forest.svg").is_file()


def test_json_holds_the_numbers_of_the_table(results, tmp_path, capsys):
    assert main(["report", str(results), "--out", str(tmp_path), "--json"]) == 0
    output = json.loads(capsys.readouterr().out)
    grid = output["grids"]["placement"]
    rows = [row for row in grid["numbers"] if row["variant"] == "after_ffn"]
    assert {row["task"] for row in rows} == {"text-mini", "all tasks"}
    assert rows[0]["n"] == 6
    assert rows[0]["difference"] == pytest.approx(rows[1]["difference"])
    assert output["page"] == str(tmp_path / "report.html")
    assert output["unread"] == {}


def test_an_empty_folder_says_how_to_make_one_and_exits_2(tmp_path, capsys):
    assert main(["report", str(tmp_path / "nothing")]) == 2
    output = capsys.readouterr().err
    assert output.count("\n") == 1
    assert "depthpde demo" in output
    assert "depthpde sweep" in output
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_place_of_the_report_is_refused_before_any_work(results, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["report", str(results), "--out", str(tmp_path / "file")]) == 2
    printed = capsys.readouterr().err
    assert printed.startswith("depthpde report: `--out` must be a folder that can be written, got ")
    assert printed.count("\n") == 1


def test_a_page_that_is_not_there_is_refused_before_any_work(results, tmp_path, capsys):
    words = ["report", str(results), "--out", str(tmp_path / "out"), "--fill"]
    for page in (tmp_path / "nope.md", tmp_path):
        assert main([*words, str(page)]) == 2
        printed = capsys.readouterr().err
        assert f"`--fill` must name pages that are there, got {page}; write it first" in printed
        assert printed.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_folder_without_any_result_exits_1_and_names_what_is_broken(tmp_path, capsys):
    (tmp_path / "runs" / "0123").mkdir(parents=True)
    assert main(["report", str(tmp_path)]) == 1
    assert "unread: runs/0123: " in capsys.readouterr().err


def test_reading_records_needs_no_torch(results, tmp_path):
    code = (
        "import sys\nfrom depthpde.cli.main import main\n"
        f"main(['report', {str(results)!r}, '--out', {str(tmp_path)!r}])\n"
        "assert 'torch' not in sys.modules"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr


def test_help_has_examples(capsys):
    with pytest.raises(SystemExit):
        main(["report", "--help"])
    assert capsys.readouterr().out.count("  depthpde report ") >= 2


def test_one_file_holds_everything_where_asked_for(results, tmp_path, capsys):
    assert main(["report", str(results), "--out", str(tmp_path), "--single-file"]) == 0
    assert [each.name for each in tmp_path.glob("*.html")] == ["report.html"]


def test_a_bar_shows_how_far_many_runs_are_read_on_a_terminal_alone():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    assert reading_bar(io.StringIO()) is None
    few, many = Terminal(), Terminal()
    for stream, of in ((few, 499), (many, 1000)):
        draw = reading_bar(stream)
        for done in range(1, of + 1):
            draw(done, of)
    assert few.getvalue() == ""
    assert "500 of 1,000" in many.getvalue()
    assert many.getvalue().endswith("\033[K"), "nothing of it stays"
