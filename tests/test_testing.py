import pytest

import depthpde as dp
from isolation.faults import healthy
from isolation.test_audit import ids, leaking


def test_a_healthy_model_passes_and_gives_its_report():
    report = dp.testing.assert_isolated(healthy("gpt2"), ids(), causal=True)
    assert not report.leaks


def test_a_leak_fails_with_the_whole_table():
    with pytest.raises(AssertionError, match=r"future +✗ leak[^\n]*h\.0\.mlp"):
        dp.testing.assert_isolated(leaking(), ids(), causal=True)


def test_the_function_is_not_hidden_by_a_folder_of_its_name():
    assert dp.Isolation.LEAK.mark == "✗"  # loads the folder first
    assert not dp.audit(healthy("gpt2"), ids()).leaks
