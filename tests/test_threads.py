"""One thread for a while, and as many as before afterwards."""

import pytest
import torch

from depthpde.threads import one_thread


def test_the_number_of_threads_is_put_back_whatever_happens():
    before = torch.get_num_threads()

    def fail():
        with one_thread():
            assert torch.get_num_threads() == 1
            raise KeyError("inside")

    with pytest.raises(KeyError, match="inside"):
        fail()
    assert torch.get_num_threads() == before
