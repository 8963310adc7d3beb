"""One thread for a while, and as many as before afterwards."""

import pytest
import torch

from depthpde.threads import one_thread, threads


def test_the_number_of_threads_is_put_back_whatever_happens():
    before = torch.get_num_threads()

    def fail():
        with one_thread():
            assert torch.get_num_threads() == 1
            raise KeyError("inside")

    with pytest.raises(KeyError, match="inside"):
        fail()
    assert torch.get_num_threads() == before


def test_threads_may_be_nested():
    before = torch.get_num_threads()
    with threads(2):
        with threads(3):
            assert torch.get_num_threads() == 3
        assert torch.get_num_threads() == 2
    assert torch.get_num_threads() == before
