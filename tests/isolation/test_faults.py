"""Every seeded fault is found and its module named; the healthy counterparts raise no alarm."""

import pytest

from depthpde.isolation.answer import Isolation
from depthpde.isolation.audit import audit
from isolation.faults import CAUSAL, FAMILIES, FAULTS, batch, build, healthy


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_a_seeded_fault_is_found_and_its_module_named(fault):
    report = audit(
        build(fault),
        batch(fault.family),
        causal=CAUSAL.get(fault.family),
        questions=[fault.question],
    )
    answer = report[fault.question]
    assert answer.verdict is Isolation.LEAK, answer
    assert answer.module.removesuffix(".inner") == fault.where  # what the wrong part wraps
    assert answer.size_float64 is not None
    assert answer.size_float64 > 1e-9


@pytest.mark.parametrize(
    ("family", "large"), [*((name, False) for name in FAMILIES), ("plain", True)]
)
def test_a_healthy_model_raises_no_alarm(family, large):
    report = audit(healthy(family, large=large), batch(family), causal=CAUSAL.get(family))
    assert report.leaks == (), report
    for name in {each.question for each in FAULTS if each.family == family}:
        found = report[name]
        assert found.trials > 0, found
        assert found.verdict is Isolation.ISOLATED or "left padding" in found.detail, found


def test_there_are_thirty_faults_and_every_question_has_three():
    assert len(FAULTS) >= 30
    questions = [each.question for each in FAULTS]
    assert all(questions.count(each) >= 3 for each in questions)
    assert len(set(questions)) == 6
