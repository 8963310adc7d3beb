import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from depthpde.data.protocol import ValidationSource
from depthpde.data.splits import hold_out, stratified


@given(st.lists(st.integers(0, 4), min_size=2, max_size=300), st.data())
def test_a_stratified_division_keeps_every_label_share_to_one_example(labels, data) -> None:
    labels = np.array(labels)
    count = data.draw(st.integers(1, len(labels) - 1))
    rest, held = stratified(labels, count, 0, "x")
    assert len(held) == count
    assert sorted(np.concatenate([rest, held]).tolist()) == list(range(len(labels)))
    for label in np.unique(labels):
        wanted = count * (labels == label).mean()
        assert abs((labels[held] == label).sum() - wanted) < 1


def test_another_name_or_seed_holds_out_others() -> None:
    labels = np.arange(200) % 2
    held = [
        stratified(labels, 20, seed, name)[1].tolist()
        for seed, name in [(0, "a"), (1, "a"), (0, "b")]
    ]
    assert held[0] != held[1]
    assert held[0] != held[2]


@pytest.mark.parametrize("count", [0, 10])
def test_refuses_to_hold_out_none_or_all(count: int) -> None:
    with pytest.raises(ValueError, match="`count` must be between 1 and 9"):
        stratified(np.zeros(10), count, 0)


def test_the_last_share_is_the_end_of_the_file() -> None:
    rest, held = hold_out(np.zeros(10), 3, ValidationSource.LAST, 0, "x")
    assert rest.tolist() == list(range(7))
    assert held.tolist() == [7, 8, 9]


def test_random_42_is_the_division_of_torch_random_split() -> None:
    parts = torch.utils.data.random_split(
        range(50), (45, 5), generator=torch.Generator().manual_seed(42)
    )
    rest, held = hold_out(np.zeros(50), 5, ValidationSource.RANDOM_42, 0, "x")
    assert rest.tolist() == list(parts[0].indices)
    assert held.tolist() == list(parts[1].indices)


def test_validating_on_test_divides_nothing() -> None:
    with pytest.raises(ValueError, match=r"'test'.*training examples"):
        hold_out(np.zeros(10), 3, ValidationSource.TEST, 0, "x")
