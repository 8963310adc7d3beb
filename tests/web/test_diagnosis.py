from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from depthpde.doctor.alarms.live import Doctor
from depthpde.models.classifier import Classifier
from depthpde.models.config import ModelConfig
from depthpde.records.record import read_grid, read_record
from depthpde.web.diagnosis import NOTHING, draw_doctor, last_verdicts, read_history, read_look


def write(path: Path, *lines: object) -> Path:
    path.write_text("".join(json.dumps(each) + "\n" for each in lines))
    return path


def look(update: int, grade: str, value: float = 0.5) -> dict[str, Any]:
    return {
        "update": update,
        "verdicts": {"rank collapse": grade, "causal leak": "healthy"},
        "values": {"rank collapse": value, "causal leak": 0.0},
        "evidence": {} if grade == "healthy" else {"rank collapse": "tokens are alike"},
        "series": {"drift.cosine": [1.0, 0.5, value], "attention.heads": [[0.1], [0.2]]},
        "unmeasured": {"gradients": "no loss given"},
    }


def test_the_newest_verdicts_are_shown_and_the_older_kept(tmp_path: Path) -> None:
    path = write(tmp_path / "doctor.jsonl", look(100, "healthy"), look(200, "ill", 0.01))
    last = last_verdicts(path)
    assert (last.update, last.words) == (200, "1 ill, 1 healthy, 1 not measured")
    assert [each.sign for each in last.verdicts] == ["✗", "✓", "·"]
    assert [each.evidence for each in last.verdicts] == [
        "tokens are alike",
        "0, not beyond its bounds",
        "no loss given",
    ]
    assert [each.update for each in read_history(path)] == [100, 200]
    assert read_history(path)[-1] == last


@pytest.mark.parametrize("line", [{}, {"verdicts": []}, {"verdicts": "none"}, {"update": 3}])
def test_a_line_of_another_form_is_left_out(line: dict[str, object], tmp_path: Path) -> None:
    assert read_look(line) is None
    assert last_verdicts(write(tmp_path / "doctor.jsonl", line)) == NOTHING


def test_a_grade_that_nobody_knows_is_shown_as_it_is() -> None:
    found = read_look({"verdicts": {"rank collapse": "odd"}, "values": {"rank collapse": None}})
    assert found is not None
    assert [(each.word, each.tone, each.evidence) for each in found.verdicts] == [
        ("odd", "quiet", "")
    ]


def test_no_file_and_a_line_being_written_say_nothing(tmp_path: Path) -> None:
    assert last_verdicts(None) == NOTHING
    (tmp_path / "doctor.jsonl").write_text('{"verdicts": {"rank')
    assert last_verdicts(tmp_path / "doctor.jsonl") == NOTHING


def test_what_the_doctor_writes_while_a_model_trains_is_read(tmp_path: Path) -> None:
    config = ModelConfig(dim=8, blocks=2, heads=2, vocabulary=9, classes=3, length=12)
    model = Classifier(config, generator=torch.Generator().manual_seed(0))
    path = tmp_path / "doctor.jsonl"
    with Doctor(model, every=1, path=path, budget=None, log=lambda line: None) as doctor:
        for _ in range(3):
            tokens = torch.randint(0, 9, (4, 12))
            model(tokens).logsumexp(1).sum().backward()
            doctor.step()
    history = read_history(path)
    assert len(history) == len(doctor.history)
    assert doctor.diagnosis is not None
    last = history[-1]
    wanted = [(each.grade.value, each.condition.value) for each in doctor.diagnosis.verdicts]
    assert [(each.word, each.about) for each in last.verdicts][: len(wanted)] == wanted
    assert last.series


def test_a_saved_probe_is_drawn_by_depth_and_by_frequency(shared_results: Path) -> None:
    run = read_grid(shared_results / "grids" / "placement.json").cells[0].run
    record = read_record(shared_results / "runs" / run)
    probe = record.folder / "probe.json"
    view = draw_doctor(record, "a run", None, probe)
    assert len(view.depth) == len(json.loads(probe.read_text())["depth"]) > 1
    assert "cosine to the input by depth" in view.depth[0]
    assert len(view.filters) == 2
    assert "after embedding" in view.filters[1]
    assert draw_doctor(record, "a run", None, None).depth == ()


def test_without_a_probe_the_doctors_own_measures_are_drawn(
    shared_results: Path, tmp_path: Path
) -> None:
    run = read_grid(shared_results / "grids" / "placement.json").cells[1].run
    record = read_record(shared_results / "runs" / run)
    path = write(tmp_path / "doctor.jsonl", look(100, "healthy"), look(200, "ill"))
    view = draw_doctor(record, "a run", path, None)
    assert len(view.depth) == 1
    assert "rank collapse over the training" in view.course[0]
    assert len(view.course) == 2


def test_a_broken_probe_draws_nothing(results: Path) -> None:
    run = read_grid(results / "grids" / "placement.json").cells[0].run
    record = read_record(results / "runs" / run)
    probe = record.folder / "probe.json"
    probe.write_text('{"depth": [1, 2], "transfer": {"a": 3}, "bands": nonsense')
    view = draw_doctor(record, "a run", None, probe)
    assert (view.depth, view.filters, view.history) == ((), (), ())
