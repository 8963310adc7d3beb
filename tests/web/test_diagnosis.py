from __future__ import annotations

import json
from pathlib import Path

from depthpde.experiments.record import read_grid, read_record
from depthpde.web.diagnosis import Look, draw_doctor, last_verdicts, read_verdicts


def write(path: Path, *lines: object) -> Path:
    path.write_text("".join(json.dumps(each) + "\n" for each in lines))
    return path


def said(verdict: str, about: str = "rank collapse") -> dict[str, str]:
    return {"verdict": verdict, "about": about, "evidence": "0.01"}


def test_the_newest_verdicts_are_shown_and_the_older_kept(tmp_path: Path) -> None:
    path = write(
        tmp_path / "doctor.jsonl",
        {"update": 100, "verdicts": [said("healthy"), said("healthy", "drift")]},
        {"update": 200, "verdicts": [said("ill"), said("healthy", "drift")]},
    )
    last = last_verdicts(path)
    assert (last.update, last.words) == (200, "1 ill, 1 healthy")
    assert [each.sign for each in last.verdicts] == ["✗", "✓"]
    assert [look.update for look in read_verdicts(path)] == [100, 200]


def test_lines_of_another_form_are_left_out(tmp_path: Path) -> None:
    path = write(
        tmp_path / "doctor.jsonl", {"verdicts": "none"}, {"x": 1}, {"verdicts": [7, said("odd")]}
    )
    (look,) = read_verdicts(path)
    assert look.update is None
    assert [(each.word, each.sign, each.tone) for each in look.verdicts] == [("odd", "·", "quiet")]


def test_no_file_has_no_verdicts() -> None:
    assert last_verdicts(None) == Look(None, ())


def test_a_saved_probe_is_drawn_by_depth_and_by_frequency(shared_results: Path) -> None:
    run = read_grid(shared_results / "grids" / "placement.json").cells[0].run
    record = read_record(shared_results / "runs" / run)
    view = draw_doctor(record, "a run", None, record.folder / "probe.json")
    assert len(view.depth) == 5
    assert "cosine to the input by depth" in view.depth[0]
    assert len(view.filters) == 2
    assert draw_doctor(record, "a run", None, None).depth == ()


def test_a_broken_probe_draws_nothing(results: Path) -> None:
    run = read_grid(results / "grids" / "placement.json").cells[0].run
    record = read_record(results / "runs" / run)
    probe = record.folder / "probe.json"
    probe.write_text('{"depth": [1, 2], "transfer": {"a": 3}, "bands": nonsense')
    view = draw_doctor(record, "a run", None, probe)
    assert (view.depth, view.filters, view.history) == ((), (), ())
