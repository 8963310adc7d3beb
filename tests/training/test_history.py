import json
import signal

from depthpde.data.batching import Cursor
from depthpde.training.history import History, Point, Status, Validation


def test_a_history_survives_json_to_the_bit():
    history = History(
        start="ab",
        status=Status.INTERRUPTED,
        update=7,
        cursor=Cursor(1, 3),
        points=[Point(4, 0, 0.1 + 0.2, 50.0, 1e-3, 2.5)],
        validations=[Validation(4, 51.0, 0.7, {"encoder.free": 0.125})],
        window=[0.1, 3.0, 5.0, 48.0],
        signal=signal.SIGTERM,
        notes=["said"],
    )
    history.best = history.validations[0]
    assert History.from_dict(json.loads(json.dumps(history.to_dict()))) == history
    assert History.from_dict(History().to_dict()) == History()


def test_exit_codes_are_the_shells():
    assert History(status=Status.INTERRUPTED, signal=signal.SIGINT).exit_code == 130
    assert History(status=Status.INTERRUPTED, signal=signal.SIGTERM).exit_code == 143
    for status in (Status.DONE, Status.STOPPED, Status.DIVERGED):
        assert History(status=status).exit_code == 0


def test_speed_of_nothing_is_nothing():
    assert History().tokens_per_second == 0.0
    assert History(tokens=300, seconds=2.0).tokens_per_second == 150.0
