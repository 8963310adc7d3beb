import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from depthpde.pages.formatting import (
    anchor,
    counted,
    format_interval,
    format_number,
    format_p,
    format_seconds,
    format_size,
    plain,
    short_tasks,
    signed,
)
from depthpde.records.statistics.paired import Interval


@pytest.mark.parametrize(
    ("value", "text"), [(1.26, "+1.3"), (-0.44, "−0.4"), (0.04, "±0.0"), (-0.04, "±0.0")]
)
def test_a_difference_shows_its_sign_and_nothing_where_there_is_none(value, text):
    assert signed(value) == text


def test_numbers_are_written_as_a_person_would():
    assert (format_number(34.06), format_number(-0.01), format_number(float("nan"))) == (
        "34.1",
        "0.0",
        "—",
    )
    assert (format_p(0.00002), format_p(0.0312), format_p(0.4)) == ("< 0.001", "0.031", "0.40")
    assert (format_size(1234), format_size(22_700_000), format_size(7)) == ("1.23 k", "22.7 M", "7")
    interval = Interval(low=-0.52, high=2.26, level=0.95, method="student")
    assert format_interval(interval) == "[−0.5, +2.3]"
    assert format_interval(None) == "[no interval]"
    assert plain("after_ffn") == "after ffn"
    assert [counted(each, "run") for each in range(3)] == ["0 runs", "1 run", "2 runs"]
    assert counted(1, "process", "processes") == "1 process"
    assert counted(2, "process", "processes") == "2 processes"


def test_heads_are_short_and_never_alike():
    assert short_tasks(["listops-mini", "pathfinder-mini"]) == {
        "listops-mini": "ListOps",
        "pathfinder-mini": "Pathf.",
    }
    heads = short_tasks(["listops-mini", "listops", "own-task"])
    assert heads == {"listops-mini": "listops-mini", "listops": "listops", "own-task": "own-task"}


@given(st.text(max_size=60), st.text(max_size=60))
def test_anchors_are_harmless_and_tell_names_apart(one, other):
    assert re.fullmatch(r"[a-z0-9-]+", anchor(one, "x"))
    assert (anchor(one) == anchor(other)) == (one == other)


def test_a_plain_name_is_its_own_anchor():
    assert anchor("after_embedding") == "after-embedding"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-3, "0 s"), (0, "0 s"), (59.4, "59 s"), (60, "1 min 00 s"), (599, "9 min 59 s"),
        (600, "10 min"), (3599, "59 min"), (3600, "1 h 00 min"), (172800, "2 d 0 h"),
    ],
)  # fmt: skip
def test_times_are_written_as_a_person_would(seconds, words):
    assert format_seconds(seconds) == words
