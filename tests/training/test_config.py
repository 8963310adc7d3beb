import json
from dataclasses import fields

import pytest

from depthpde.training.config import Keep, TrainingConfig
from depthpde.training.pretraining import PretrainingConfig
from depthpde.training.schedule import Schedule


def test_a_config_survives_json():
    config = TrainingConfig(schedule="rsqrt", keep="last", clip=None, patience=3)
    assert config.schedule is Schedule.RSQRT
    assert config.keep is Keep.LAST
    assert TrainingConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


def test_every_field_is_written_and_has_a_default():
    assert set(TrainingConfig().to_dict()) == {each.name for each in fields(TrainingConfig)}


def test_not_to_compile_is_to_say_nothing():
    assert TrainingConfig(compile=False) == TrainingConfig()
    assert TrainingConfig(compile=False).to_dict()["compile"] is None
    assert TrainingConfig(compile=True).to_dict()["compile"] is True


def test_a_whole_number_where_a_float_is_meant_is_the_same_setting():
    written = json.dumps(TrainingConfig(clip=1, weight_decay=0, floor=0, ratio_gain=10).to_dict())
    assert written == json.dumps(TrainingConfig(clip=1.0, weight_decay=0.0).to_dict())
    stage = PretrainingConfig(weight_decay=0, learning_rate=1)
    same = PretrainingConfig(weight_decay=0.0, learning_rate=1.0)
    assert json.dumps(stage.to_dict()) == json.dumps(same.to_dict())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"updates": 0}, "`updates` must be at least 1, got 0"),
        ({"batch_size": 1.5}, "`batch_size` must be a whole number"),
        ({"accumulate": True}, "`accumulate` must be a whole number"),
        ({"evaluate_every": -1}, "`evaluate_every` must be at least 1"),
        ({"checkpoint_every": 0}, "`checkpoint_every` must be at least 1"),
        ({"log_every": 0}, "`log_every` must be at least 1"),
        ({"patience": 0}, "`patience` must be at least 1"),
        ({"learning_rate": 0.0}, "`learning_rate` must lie in"),
        ({"learning_rate": float("nan")}, "`learning_rate` must be a finite number"),
        ({"ratio_gain": -1}, "`ratio_gain` must lie in"),
        ({"floor": 2}, r"`floor` must lie in \[0, 1\]"),
        ({"weight_decay": -1e-3}, "`weight_decay` must lie in"),
        ({"beta1": 1.0}, "`beta1` must lie in"),
        ({"beta2": 1.0}, "`beta2` must lie in"),
        ({"epsilon": 0.0}, "`epsilon` must lie in"),
        ({"label_smoothing": 1.0}, "`label_smoothing` must lie in"),
        ({"loss_bound": 0.0}, "`loss_bound` must lie in"),
        ({"clip": 0.0}, "`clip` must lie in.*use None"),
        ({"warmup": -1}, "`warmup` must be a whole number of at least 0, got -1"),
        ({"seed": 0.5}, "`seed` must be a whole number of at least 0, got 0.5"),
        ({"updates": 10, "warmup": 10}, "`warmup` must be less than `updates` = 10, got 10"),
        ({"schedule": "cosin"}, "did you mean 'cosine'"),
        ({"precision": "float16"}, "`precision` must be one of full, bfloat16.*did you mean"),
        ({"keep": "bets"}, "did you mean 'best'"),
        ({"compile": "yes"}, "`compile` must be True or False, got 'yes'"),
    ],
)
def test_refuses(settings, message):
    with pytest.raises(ValueError, match=message):
        TrainingConfig(**settings)


def test_refuses_an_unknown_key_and_names_the_nearest():
    with pytest.raises(ValueError, match="did you mean 'learning_rate'"):
        TrainingConfig.from_dict({"learning_rat": 1.0})


def test_refuses_what_is_no_mapping():
    with pytest.raises(ValueError, match="`config` must be a mapping"):
        TrainingConfig.from_dict([1])
