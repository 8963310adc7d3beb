"""How a state is shown: no meaning hangs on colour."""

from __future__ import annotations

from depthpde.pages.resources import read_text
from depthpde.records.record import State
from depthpde.web.states import STATE_BADGES


def test_every_state_has_a_sign_and_words_of_its_own() -> None:
    assert set(STATE_BADGES) == set(State)
    assert len({look.sign for look in STATE_BADGES.values()}) == len(State)
    assert len({look.words for look in STATE_BADGES.values()}) == len(State)


def test_every_tone_has_a_rule_in_the_style_sheet() -> None:
    sheet = read_text("depthpde.web", "dash.css")
    for look in STATE_BADGES.values():
        assert f".tone-{look.tone} {{" in sheet
