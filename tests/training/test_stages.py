import os
import signal

import pytest

from depthpde.models.config import ModelConfig
from depthpde.models.language import LanguageModel
from depthpde.training.history import Status
from depthpde.training.identity import weights_digest
from depthpde.training.loop import train
from depthpde.training.pretraining import PretrainingConfig, pretrain
from depthpde.training.stages import learn
from training.counting import make_config, make_model

FIRST = PretrainingConfig(updates=12)


def stop_at(update):
    def watch(history, point):
        if history.update == update:
            os.kill(os.getpid(), signal.SIGINT)

    return watch


def test_without_pretraining_it_is_training_alone(split, validation):
    one, other = make_model(), make_model()
    learn(one, split, make_config(), validation=validation)
    train(other, split, make_config(), validation=validation)
    assert weights_digest(one.state_dict()) == weights_digest(other.state_dict())


def test_the_stages_follow_each_other_and_each_is_watched_by_itself(split, validation):
    seen = {"first": [], "second": []}
    one, other = make_model(), make_model()
    history = learn(
        one, split, make_config(), pretraining=FIRST, validation=validation,
        watch=lambda history, point: seen["second"].append(point.update),
        watch_pretraining=lambda history, point: seen["first"].append(point.update),
    )  # fmt: skip
    pretrain(other, split, FIRST, make_config(), validation=validation)
    train(other, split, make_config(), validation=validation)
    assert weights_digest(one.state_dict()) == weights_digest(other.state_dict())
    assert history.status is Status.DONE
    assert seen == {"first": list(range(1, 13)), "second": list(range(1, 31))}


@pytest.mark.parametrize("stops", [(5, None), (None, 11), (5, 11)])
def test_a_run_stopped_in_either_stage_ends_with_the_same_weights(tmp_path, split, stops):
    unbroken = make_model()
    learn(unbroken, split, make_config(), pretraining=FIRST)
    for name, stop in zip(("watch_pretraining", "watch"), stops, strict=True):
        if stop is not None:
            half = learn(
                make_model(), split, make_config(), pretraining=FIRST, folder=tmp_path,
                **{name: stop_at(stop)},
            )  # fmt: skip
            assert (half.status, half.update, half.exit_code) == (Status.INTERRUPTED, stop, 130)
    told = []
    model = make_model()
    learn(model, split, make_config(), pretraining=FIRST, folder=tmp_path, say=told.append)
    assert weights_digest(model.state_dict()) == weights_digest(unbroken.state_dict())
    first, second = "pretraining: resumed at update 5 of 12", "resumed at update 11 of 30"
    assert told == [second if stops[1] else first]


def test_a_diverged_first_stage_is_the_result(split):
    history = learn(
        make_model(), split, make_config(loss_bound=0.01), pretraining=FIRST, watch=pytest.fail
    )
    assert history.status is Status.DIVERGED
    assert history.notes == ["in pretraining, update 0 of 12"]


def test_refuses_to_pretrain_a_language_model(split):
    model = LanguageModel(ModelConfig(dim=8, blocks=1, vocabulary=3, length=24))
    with pytest.raises(ValueError, match="`pretraining` must be left out for a LanguageModel"):
        learn(model, split, make_config(), pretraining=FIRST)
