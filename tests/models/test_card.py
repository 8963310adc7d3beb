"""A card says what is known, with intervals, in the form that the hub reads."""

import pytest
from torch import nn

from depthpde.models.card import UNMEASURED, Metric, write_card


def test_a_card_without_metrics_says_so():
    card = write_card(nn.Linear(2, 3))
    assert UNMEASURED in card
    assert "# Linear" in card
    assert "9 parameters" in card
    assert "Not said." in card


def test_the_hubs_own_library_reads_the_metrics():
    hub = pytest.importorskip("huggingface_hub", reason="needs the extra hf")
    metric = Metric(
        kind="accuracy", words="test accuracy, %", value=41.5, low=40.0, high=43.0, basis="6 seeds"
    )
    card = hub.ModelCard(write_card(nn.Linear(2, 3), task="listops", metrics=[metric]))
    assert card.data.library_name == "depthpde"
    (found,) = card.data.eval_results
    assert (found.dataset_name, found.metric_type, found.metric_value) == (
        "listops", "accuracy", 41.5
    )  # fmt: skip
    assert "| test accuracy, % | 41.5 | [40, 43] | 6 seeds |" in card.text
