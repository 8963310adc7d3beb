import os
import signal
import threading

import pytest

from depthpde.training.interruption import CAUGHT, Interruption


@pytest.mark.parametrize("number", CAUGHT)
def test_a_signal_is_noted_and_the_old_handlers_come_back(number):
    before = [signal.getsignal(each) for each in CAUGHT]
    with Interruption() as interruption:
        assert interruption.signal == 0
        os.kill(os.getpid(), number)
        assert interruption.signal == number
    assert [signal.getsignal(each) for each in CAUGHT] == before


def test_a_second_ctrl_c_acts_as_always():
    with Interruption():
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_a_second_sigterm_does_not_cut_what_is_saved():
    with Interruption() as interruption:
        for _ in range(3):
            os.kill(os.getpid(), signal.SIGTERM)
        assert interruption.signal == signal.SIGTERM


def test_outside_the_main_thread_nothing_is_caught_and_nothing_breaks():
    before = [signal.getsignal(each) for each in CAUGHT]
    seen = []

    def work():
        with Interruption() as interruption:
            seen.append((interruption.signal, [signal.getsignal(each) for each in CAUGHT]))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [(0, before)]
