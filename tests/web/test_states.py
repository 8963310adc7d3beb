"""How a state is shown: no meaning hangs on colour."""

from __future__ import annotations

import pytest

from depthpde.pages.resources import read_text
from depthpde.records.record import State
from depthpde.web.states import STATE_BADGES, format_seconds


def test_every_state_has_a_sign_and_words_of_its_own() -> None:
    assert set(STATE_BADGES) == set(State)
    assert len({look.sign for look in STATE_BADGES.values()}) == len(State)
    assert len({look.words for look in STATE_BADGES.values()}) == len(State)


def test_every_tone_has_a_rule_in_the_style_sheet() -> None:
    sheet = read_text("depthpde.web", "dash.css")
    for look in STATE_BADGES.values():
        assert f".tone-{look.tone} {{" in sheet


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-3, "0 s"), (0, "0 s"), (59.4, "59 s"), (60, "1 min 00 s"), (599, "9 min 59 s"),
        (600, "10 min"), (3599, "59 min"), (3600, "1 h 00 min"), (172800, "2 d 0 h"),
    ],
)  # fmt: skip
def test_times_are_written_as_a_person_would(seconds: float, words: str) -> None:
    assert format_seconds(seconds) == words
