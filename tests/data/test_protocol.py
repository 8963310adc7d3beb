import pytest

from depthpde.data.protocol import LEGACY, PROTOCOLS, ValidationSource, rules_of
from depthpde.data.tasks import TASKS

LRA = ("listops", "text", "retrieval", "image", "pathfinder")


@pytest.mark.parametrize("task", TASKS.values(), ids=list(TASKS))
def test_no_task_selects_on_test_under_the_strict_protocol(task) -> None:
    rules = rules_of(task.name, task.family, "strict", mini=task.mini)
    assert rules.validation in (ValidationSource.HELD_OUT, ValidationSource.GIVEN)
    assert not rules.differences


@pytest.mark.parametrize("protocol", LEGACY)
@pytest.mark.parametrize("family", LRA)
def test_every_legacy_protocol_covers_the_arena_and_says_what_differs(protocol, family) -> None:
    rules = rules_of(family, family, protocol)
    assert rules.protocol == protocol
    assert rules.differences or rules.not_imitated


def test_legacy_text_is_validated_on_test_and_says_so() -> None:
    for protocol in LEGACY:
        rules = rules_of("text", "text", protocol)
        assert rules.validation is ValidationSource.TEST
        assert "selected on test" in rules.differences[0]


def test_refuses_unknown_protocols_and_legacy_where_nobody_published() -> None:
    with pytest.raises(ValueError, match=f"`protocol` must be one of {', '.join(PROTOCOLS)}"):
        rules_of("text", "text", "lra-2021")
    with pytest.raises(
        ValueError, match=r"'s4-2022' says nothing about newsgroups.*--protocol str"
    ):
        rules_of("newsgroups", "newsgroups", "s4-2022")
    with pytest.raises(ValueError, match="'lra-2020' says nothing about text-mini"):
        rules_of("text-mini", "text", "lra-2020", mini=True)
