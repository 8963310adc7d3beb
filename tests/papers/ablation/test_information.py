"""The information plane says how much of it can be believed, and judges by what can."""

from dataclasses import dataclass

import pytest

from depthpde.papers.ablation.information import (
    information_claims,
    plane_table,
    sliced_table,
    where_believed,
)
from depthpde.papers.ablation.variants import (
    BOTH,
    NEITHER,
    TRANSFORMER,
    Ablation,
    Measured,
    label,
)
from depthpde.papers.claims import in_order
from depthpde.records.record import State
from depthpde.records.verdicts import Outcome


@dataclass
class Run:
    """A record as far as the plane asks for it."""

    state: State = State.DONE


def sliced(value, unreliable=""):
    return {"value": value, "detected": value > 0.05, "unreliable": unreliable}


def measured(at_end, *, whole="", slices=""):
    near = {"about_input": 1.0, "about_label": at_end, "label_unreliable": whole}
    plane = [near | {"input_unreliable": "saturates"}, near | {"input_unreliable": ""}]
    layers = [
        {"layer": 0, "input": sliced(0.4), "label": sliced(0.1)},
        {"layer": 6, "input": sliced(0.1), "label": sliced(at_end, slices)},
    ]
    seen = {"start": {"information": plane}, "end": {"information": plane}}
    return Measured(Run(), seen, {"start": layers, "end": layers})


def ablation(gap=0.3, **unreliable):
    runs = {}
    for seed in range(6):
        values = {BOTH: 0.4 + gap + 0.01 * seed, NEITHER: 0.4 - 0.01 * seed}
        for name, value in values.items():
            runs["mnist-mini", label(TRANSFORMER, name), seed] = measured(value, **unreliable)
    return Ablation(None, runs)


def test_estimates_that_fail_their_self_check_are_left_out():
    (whole,) = in_order(information_claims(ablation()))
    assert whole.verdict is Outcome.SUPPORTED
    (whole,) = in_order(information_claims(ablation(whole="reads 0.9 nats")))
    assert whole.verdict is Outcome.INCONCLUSIVE
    assert "24 estimates" in whole.finding


def test_the_line_counts_what_passes_and_where():
    line = where_believed(ablation(whole="reads 0.9 nats"))
    assert "I(X;T) at the first layer 0 of 24" in line
    assert "I(X;T) behind it 24 of 24" in line
    assert "I(T;Y) trained 0 of 24" in line
    assert "SI(T;Y) untrained 24 of 24" in line
    assert "12 untrained and 12 trained models of 12 runs, on mnist-mini" in line
    assert "not estimated" in where_believed(Ablation(None, {}))


def test_the_sliced_table_shows_shares_of_what_the_input_tells_of_itself():
    rows = sliced_table(ablation())
    assert [(row["stabilizer"], row["when"], row["layer"]) for row in rows[:3]] == [
        (BOTH, "untrained", 0),
        (BOTH, "untrained", 6),
        (BOTH, "trained", 0),
    ]
    assert rows[0]["SI(X;T) / SI(X;X)"].startswith("1")
    assert rows[1]["SI(X;T) / SI(X;X)"].startswith("0.25")
    assert rows[1]["unreliable (T;Y)"] == "0/6"
    assert len(rows) == 8
    assert len(plane_table(ablation())) == 12, "first, middle and last of two"


def test_a_run_that_was_not_estimated_is_in_no_row():
    runs = {
        key: Measured(each.record, each.seen, each.sliced | {"end": None})
        for key, each in ablation().runs.items()
    }
    assert {row["when"] for row in sliced_table(Ablation(None, runs))} == {"untrained"}
    assert "12 untrained and 0 trained" in where_believed(Ablation(None, runs))


@pytest.mark.parametrize("state", [State.DIVERGED])
def test_the_end_of_a_divergence_counts_nowhere(state):
    runs = {
        key: Measured(Run(state), each.seen, each.sliced) for key, each in ablation().runs.items()
    }
    assert "0 trained" in where_believed(Ablation(None, runs))
