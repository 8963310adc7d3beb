import json
import os
import signal
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from depthpde.data.batching import Batches
from depthpde.data.task import TaskKind
from depthpde.models.config import ModelConfig
from depthpde.models.vision import VisionTransformer
from depthpde.training.config import Keep
from depthpde.training.evaluate import IGNORED
from depthpde.training.fingerprint import weights_digest
from depthpde.training.history import Status
from depthpde.training.loop import train
from depthpde.training.pretraining import (
    HIDDEN,
    Objective,
    PretrainingConfig,
    TokenPredictor,
    batch_transform,
    choose_hidden,
    pretrain,
    usual_share,
)
from training.counting import make_config, make_model, make_split

SHORT = PretrainingConfig(updates=20, share=0.3)
CAUSAL = PretrainingConfig(objective="causal", updates=20)


def stop_at(update):
    def callback(history, point):
        if history.update == update:
            os.kill(os.getpid(), signal.SIGINT)

    return callback


def chance(seed=0):
    return torch.Generator().manual_seed(seed)


def one_batch(split, size=16):
    return next(Batches(split, size).epoch(0))


@given(
    lengths=st.lists(st.integers(0, 30), min_size=1, max_size=8),
    share=st.floats(0.01, 0.99),
    seed=st.integers(0, 100),
)
def test_exactly_the_share_is_hidden_and_never_padding(lengths, share, seed):
    valid = torch.arange(32) < torch.tensor(lengths)[:, None]
    hidden = choose_hidden(valid, share, chance(seed))
    assert not (hidden & ~valid).any()
    for row, length in zip(hidden, lengths, strict=True):
        wanted = max(1, torch.round(torch.tensor(share * length)).long()) if length else 0
        assert abs(int(row.sum()) - int(wanted)) <= (share * length % 1 == 0.5)


def test_hidden_tokens_are_gone_from_the_input_and_are_the_only_labels(split):
    batch = one_batch(split)
    made = batch_transform(SHORT, split)(batch, chance())
    hidden = made.tokens == HIDDEN
    assert hidden.any(dim=1).all()
    assert torch.equal(made.labels[hidden], batch.tokens[hidden])
    assert (made.labels[~hidden] == IGNORED).all()
    assert torch.equal(made.tokens[~hidden], batch.tokens[~hidden])
    assert torch.equal(made.valid_mask, batch.valid_mask)


def test_causal_labels_are_the_next_tokens_and_padding_is_never_told(split):
    batch = one_batch(split)
    made = batch_transform(CAUSAL, split)(batch, chance())
    assert torch.equal(made.tokens, batch.tokens)
    for tokens, labels, length in zip(
        batch.tokens, made.labels, batch.valid_mask.sum(dim=1).tolist(), strict=True
    ):
        assert torch.equal(labels[: length - 1], tokens[1:length])
        assert (labels[length - 1 :] == IGNORED).all()


def test_both_documents_of_a_pair_are_learned_from(split):
    pairs = np.random.default_rng(0).integers(0, len(split), (40, 2)).astype(np.uint32)
    paired = replace(split, kind=TaskKind.PAIR, pairs=pairs, labels=split.labels[:40])
    batch = one_batch(paired, 8)
    made = batch_transform(SHORT, paired)(batch, chance())
    assert len(made) == 2 * len(batch)
    model = make_model(documents=2)
    assert pretrain(model, paired, SHORT, make_config()).status is Status.DONE


@pytest.mark.parametrize(
    ("changes", "share"),
    [({}, 0.1), ({"vocabulary": 257}, 0.15), ({"kind": TaskKind.IMAGE, "vocabulary": 256}, 0.5)],
)
def test_the_usual_share_is_that_of_the_literature(split, changes, share):
    assert usual_share(replace(split, **changes)) == share


def test_hidden_tokens_are_learned_and_labels_are_never_looked_at(split, validation):
    config = PretrainingConfig(updates=150, share=0.3)
    encoders = []
    for labels in (split.labels, 1 - split.labels):
        model = make_model(dropout=0.0)
        head = weights_digest(model.head.state_dict())
        printed = pretrain(
            model, replace(split, labels=labels), config, make_config(), validation=validation
        )
        assert weights_digest(model.head.state_dict()) == head
        encoders.append(weights_digest(model.encoder.state_dict()))
    assert encoders[0] == encoders[1] != weights_digest(make_model().encoder.state_dict())
    majority = 100 * max(np.bincount(validation.tokens) / len(validation.tokens))
    assert (
        printed.validations[-1].accuracy > majority + 15
    )  # the bias of each sequence: 80 % at best


def test_a_pretrained_encoder_starts_the_training_that_follows(split, validation):
    model = make_model()
    pretrain(model, split, PretrainingConfig(updates=60), make_config())
    assert train(model, split, make_config(updates=120), validation=validation).best.accuracy > 90


@pytest.mark.parametrize("config", [SHORT, CAUSAL], ids=["masked", "causal"])
@pytest.mark.parametrize("stops", [(1,), (8, 15)])
def test_an_interrupted_stage_equals_an_unbroken_one_bit_for_bit(tmp_path, split, config, stops):
    unbroken = make_model()
    pretrain(unbroken, split, config, make_config())
    for stop in stops:
        model = make_model()
        half = pretrain(
            model, split, config, make_config(), folder=tmp_path, callback=stop_at(stop)
        )
        assert (half.status, half.update) == (Status.INTERRUPTED, stop)
        assert weights_digest(model.state_dict()) == weights_digest(make_model().state_dict())
    for _ in range(2):  # the second time it is finished already
        model = make_model()
        pretrain(model, split, config, make_config(), folder=tmp_path)
        assert weights_digest(model.state_dict()) == weights_digest(unbroken.state_dict())


def test_refuses_to_go_on_with_another_objective(tmp_path, split):
    pretrain(make_model(), split, SHORT, make_config(), folder=tmp_path, callback=stop_at(3))
    other = replace(SHORT, share=0.4)
    with pytest.raises(ValueError, match=r"pretraining\.share = 0\.3 where this run has 0\.4"):
        pretrain(make_model(), split, other, make_config(), folder=tmp_path)


def test_a_divergence_leaves_the_model_as_it_was(split):
    model = make_model()
    printed = pretrain(model, split, SHORT, make_config(loss_bound=0.01))
    assert printed.status is Status.DIVERGED
    assert weights_digest(model.state_dict()) == weights_digest(make_model().state_dict())


@pytest.mark.parametrize("pooling", ["mean", "cls"])
@pytest.mark.parametrize("taken", ["token", "linear"])
def test_pixels_without_a_spare_token_can_be_hidden(split, pooling, taken):
    pictures = replace(split, kind=TaskKind.IMAGE, shift=0, vocabulary=2)
    model = make_model(vocabulary=2, pooling=pooling, input=taken)
    assert pretrain(model, pictures, SHORT, make_config()).status is Status.DONE


@pytest.mark.parametrize("at", [3, 9])
def test_a_hidden_token_has_no_say_and_in_the_causal_stage_no_future_one(at):
    config = make_model().config
    tokens = torch.tensor([[1, 2, 1, 1, 2, 2, 1, 2, 1, 2, 2, 1]])
    other = tokens.clone()
    other[0, at] = 3 - other[0, at]
    causal = TokenPredictor(config, CAUSAL, seed=0).eval()
    change = (causal(tokens) - causal(other)).abs().sum(dim=-1)[0]
    assert not change[:at].any()
    assert change[at:].all()
    masked = TokenPredictor(config, SHORT, seed=0).eval()
    tokens[0, at] = other[0, at] = HIDDEN
    assert torch.equal(masked(tokens), masked(other))


def test_what_is_not_said_is_as_in_the_training_that_follows():
    training = make_config(updates=500, warmup=40, label_smoothing=0.1, patience=2)
    stage = PretrainingConfig(updates=90, learning_rate=0.5).stage(training)
    assert (stage.updates, stage.warmup, stage.learning_rate) == (90, 9, 0.5)
    assert (stage.batch_size, stage.seed) == (training.batch_size, training.seed)
    assert (stage.keep, stage.patience, stage.label_smoothing) == (Keep.LAST, None, 0.0)


def test_a_config_survives_json():
    config = PretrainingConfig(objective="causal", updates=7, schedule="linear", warmup=2)
    assert config.objective is Objective.CAUSAL
    assert PretrainingConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"objective": "maskd"}, "did you mean 'masked'"),
        ({"share": 1.0}, "`share` must lie in"),
        ({"objective": "causal", "share": 0.1}, "`share` must be left out for the causal"),
        ({"updates": 0}, "`updates` must be at least 1"),
        ({"schedule": "liner"}, "did you mean 'linear'"),
        ({"batch_size": 0}, "`batch_size` must be at least 1"),
        ({"learning_rate": -1.0}, "`learning_rate` must lie in"),
        ({"updates": 5, "warmup": 5}, "`warmup` must be less than `updates` = 5"),
    ],
)
def test_refuses(settings, message):
    with pytest.raises(ValueError, match=message):
        PretrainingConfig(**settings)


def test_refuses_an_unknown_key_and_what_is_no_mapping():
    with pytest.raises(ValueError, match="did you mean 'objective'"):
        PretrainingConfig.from_dict({"objectiv": "masked"})
    with pytest.raises(ValueError, match="`pretraining` must be a mapping"):
        PretrainingConfig.from_dict("masked", "pretraining")


def test_refuses_what_has_no_tokens_to_tell(split):
    with pytest.raises(ValueError, match="must be left out for language tasks and patch inputs"):
        pretrain(make_model(), replace(split, kind=TaskKind.LANGUAGE), SHORT, make_config())
    config = ModelConfig(dim=8, blocks=1, grid=(2, 2), classes=2)
    with pytest.raises(ValueError, match="got sequence examples with patch input"):
        pretrain(VisionTransformer(config), make_split(), SHORT, make_config())
