import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from depthpde.data.counter import bits, permutation
from depthpde.data.drawing import below, mix, uniform

MASK = (1 << 64) - 1


def split_mix(key: int, index: int) -> int:
    z = (key + index * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


@given(st.integers(0, (1 << 63) - 1), st.integers(0, 1 << 40))
@settings(deadline=None, max_examples=50)
def test_numpy_kernel_and_whole_number_arithmetic_give_the_same_bits(key: int, start: int) -> None:
    wanted = [split_mix(key, start + each) for each in range(3)]
    assert bits(key, 3, start=start).tolist() == wanted
    assert [int(mix(np.uint64(key), np.uint64(start + each))) for each in range(3)] == wanted


def test_a_published_value_of_split_mix_comes_out() -> None:
    # The first outputs of SplitMix64 seeded with 1234567 (state advances before each output).
    assert bits(1234567, 2, start=1).tolist() == [6457827717110365317, 3203168211198807973]


def test_a_permutation_holds_every_index_once_and_depends_on_its_key() -> None:
    first, second = permutation(1, 1000), permutation(2, 1000)
    assert sorted(first.tolist()) == list(range(1000))
    assert (first != second).any()
    assert (permutation(1, 1000) == first).all()


def test_draws_are_uniform() -> None:
    key = np.uint64(9)
    values = np.array([uniform(key, np.uint64(each)) for each in range(20_000)])
    assert 0 <= values.min() < values.max() < 1
    assert abs(values.mean() - 0.5) < 4 / np.sqrt(12 * 20_000)
    digits = np.array([below(key, np.uint64(each), 10) for each in range(20_000)])
    assert np.abs(np.bincount(digits, minlength=10) - 2000).max() < 5 * np.sqrt(2000)
