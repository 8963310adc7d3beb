"""A run tells of every machine that computed a part of it."""

from __future__ import annotations

import json

from depthpde.runs.environment import describe_environment, remember_environments

HERE, THERE, ELSEWHERE = ({"commit": commit, "threads": 2} for commit in "abc")


def test_a_run_that_is_resumed_elsewhere_tells_of_both_machines(tmp_path):
    path = tmp_path / "environment.json"
    printed = []
    for now in (HERE, HERE, THERE, ELSEWHERE, THERE):
        printed.append(remember_environments(path, now))
        path.write_text(json.dumps(printed[-1]))
    assert printed == [
        HERE,
        HERE,
        THERE | {"earlier": [HERE]},
        ELSEWHERE | {"earlier": [HERE, THERE]},
        THERE | {"earlier": [HERE, ELSEWHERE]},
    ]


def test_a_file_that_tells_nothing_is_written_anew(tmp_path):
    path = tmp_path / "environment.json"
    for text in ("{", "[]", "3"):
        path.write_text(text)
        assert remember_environments(path, HERE) == HERE


def test_what_is_told_is_plain_json():
    printed = describe_environment()
    assert json.loads(json.dumps(printed)) == printed
