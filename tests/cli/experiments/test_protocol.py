"""`depthpde protocol`: what was fixed, and whether the runs followed it."""

from __future__ import annotations

import json

import pytest

from depthpde.cli.main import main
from depthpde.papers.registry import EXPERIMENTS
from sweeps.test_grid_file import STUDY, write

UNDER_PROTOCOL = [name for name, each in EXPERIMENTS.items() if each.protocol is not None]


@pytest.mark.parametrize("name", UNDER_PROTOCOL)
def test_shows_every_protocol_whole(name, capsys):
    protocol = EXPERIMENTS[name].protocol
    assert main(["protocol", "show", name]) == 0
    text = capsys.readouterr().out
    assert protocol.digest in text
    for number, each in enumerate(protocol.contrasts, 1):
        (line,) = (line for line in text.splitlines() if line.startswith(f"  {number}. "))
        assert all(label in line for label in (each.variant, each.against, *(each.beyond or ())))
    assert main(["protocol", "show", name, "--json"]) == 0
    output = json.loads(capsys.readouterr().out)
    assert output.pop("digest") == protocol.digest
    assert output == protocol.to_dict()


def test_shows_the_margins_that_no_file_names_and_what_weakens_a_protocol(tmp_path, capsys):
    path = write(tmp_path, seeds="left out", study=STUDY, variants={"narrow": None, "wide": {}})
    assert main(["protocol", "show", str(path)]) == 0
    same, _, *doubts = capsys.readouterr().out.splitlines()[-4:]
    assert same.startswith("same ")
    assert same.endswith("within ±0.75 points, ±0.1 of a sign")
    assert [each.split()[0] for each in doubts] == ["doubt"] * 2
    assert main(["protocol", "show", "medium"]) == 0
    assert "doubt" not in capsys.readouterr().out


def test_checks_a_folder_and_exits_with_1_where_the_protocol_was_changed(tmp_path, capsys):
    asked = ["--out", str(tmp_path / "results")]
    path = write(tmp_path, seeds="left out", study=STUDY, variants={"narrow": None, "wide": {}})
    assert main(["protocol", "check", str(path), *asked]) == 2
    assert "`RESULTS` must be a folder" in capsys.readouterr().err, "misspelled, nothing is checked"
    (tmp_path / "results").mkdir()
    assert main(["protocol", "check", str(path), *asked]) == 0
    assert "not laid down yet" in capsys.readouterr().out
    from depthpde.records.protocols.sealing import seal
    from depthpde.sweeps.grid_file import read_plan

    seal(tmp_path / "results", read_plan(path).study, now=1e9)
    assert main(["protocol", "check", str(path), *asked]) == 0
    assert "laid down 2001-09-09 01:46 UTC, before the first run" in capsys.readouterr().out
    changed = STUDY | {"rates": [0.001, 0.004]}
    path = write(tmp_path, seeds="left out", study=changed, variants={"narrow": None, "wide": {}})
    assert main(["protocol", "check", str(path), *asked, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["changed"] == ["rates"]


def test_what_has_no_protocol_is_said_to_be_exploratory(tmp_path, capsys):
    assert main(["protocol", "show", "placement"]) == 2
    assert "'placement': its runs came before" in capsys.readouterr().err
    assert main(["protocol", "check", str(write(tmp_path))]) == 2
    assert "'width', which has none: its runs are exploratory" in capsys.readouterr().err
    assert main(["protocol", "show", "stencl"]) == 2
    assert "did you mean 'stencil'" in capsys.readouterr().err
