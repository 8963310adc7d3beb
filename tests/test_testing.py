import pytest

import depthpde as dp
from audit.faults import healthy
from audit.test_audit import ids, leaking


def test_a_healthy_model_passes_and_gives_its_report():
    report = dp.testing.assert_isolated(healthy("gpt2"), ids(), causal=True)
    assert not report.leaks


def test_a_leak_fails_with_the_whole_table():
    with pytest.raises(AssertionError, match=r"future +✗ leak[^\n]*h\.0\.mlp"):
        dp.testing.assert_isolated(leaking(), ids(), causal=True)
