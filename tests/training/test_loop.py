import os
import signal
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file

from depthpde.data.batching import Batches
from depthpde.training.config import Keep
from depthpde.training.evaluate import evaluate
from depthpde.training.fingerprint import weights_digest
from depthpde.training.history import Status
from depthpde.training.loop import accumulate_gradient, train
from training.counting import make_config, make_model


def stop_at(update, number=signal.SIGINT):
    def callback(history, point):
        if history.update == update:
            os.kill(os.getpid(), number)

    return callback


def printed(history):
    """Everything but the clock."""
    return history.to_dict() | {"seconds": 0.0, "notes": []}


def test_loss_falls_and_the_task_is_learned(split, validation):
    model = make_model()
    history = train(model, split, make_config(updates=120), validation=validation)
    assert history.status is Status.DONE
    assert history.update == 120
    assert history.points[-1].loss < 0.5 * history.points[0].loss
    assert history.best.accuracy > 90.0
    assert evaluate(model, validation).accuracy == history.best.accuracy


def test_half_precision_learns_too_and_leaves_the_weights_whole(split, validation):
    model = make_model()
    seen = set()
    model.head.register_forward_hook(lambda module, inputs, output: seen.add(output.dtype))
    config = make_config(updates=120, precision="bfloat16")
    history = train(model, split, config, validation=validation)
    assert history.best.accuracy > 90.0
    assert seen == {torch.bfloat16, torch.float32}, "half in training, whole in validation"
    assert {each.dtype for each in model.parameters()} == {torch.float32}


@pytest.mark.drill
def test_compiled_passes_give_the_same_losses_and_checkpoints_of_the_same_names(tmp_path, split):
    settings = {"updates": 6, "log_every": 1, "warmup": 2}
    plain = train(make_model(dropout=0.0), split, make_config(**settings), folder=tmp_path / "no")
    config, folder = make_config(**settings, compile=True), tmp_path / "yes"
    train(make_model(dropout=0.0), split, config, folder=folder, callback=stop_at(4))
    found = train(make_model(dropout=0.0), split, config, folder=folder)
    assert [p.loss for p in found.points] == pytest.approx([p.loss for p in plain.points], rel=1e-4)
    names = [load_file(each / "update-00000006.safetensors").keys() for each in tmp_path.iterdir()]
    assert names[0] == names[1]
    with pytest.raises(ValueError, match=r"training\.compile = True where this run has None"):
        train(make_model(dropout=0.0), split, make_config(**settings), folder=folder)


def test_a_watcher_that_fails_leaves_the_model_as_it_stood(split):
    model = make_model().eval()

    def fail(history, point):
        raise RuntimeError("the watcher failed")

    with pytest.raises(RuntimeError, match="the watcher failed"):
        train(model, split, make_config(), callback=fail)
    assert not model.training


def test_the_same_seed_gives_the_same_run_and_another_does_not(split, validation):
    digests = []
    for seed in (0, 0, 1):
        model = make_model()
        train(model, split, make_config(seed=seed), validation=validation)
        digests.append(weights_digest(model.state_dict()))
    assert digests[0] == digests[1] != digests[2]


def test_torchs_own_stream_and_the_models_mode_are_left_alone(split):
    model = make_model().eval()
    before = torch.get_rng_state()
    train(model, split, make_config(updates=6))
    assert torch.equal(torch.get_rng_state(), before)
    assert not model.training


@pytest.mark.parametrize(
    "settings",
    [{}, {"accumulate": 3}, {"keep": "last", "clip": None, "precision": "bfloat16"}],
)
@pytest.mark.parametrize("stops", [(1,), (7,), (8, 9, 23), (29,)])
def test_an_interrupted_run_equals_an_unbroken_one_bit_for_bit(
    tmp_path, split, validation, settings, stops
):
    config = make_config(**settings)
    unbroken = make_model()
    whole = train(unbroken, split, config, validation=validation)
    for stop in stops:
        half = train(
            make_model(),
            split,
            config,
            validation=validation,
            folder=tmp_path,
            callback=stop_at(stop),
        )
        assert (half.status, half.update) == (Status.INTERRUPTED, stop)
    model = make_model()
    resumed = train(model, split, config, validation=validation, folder=tmp_path)
    assert printed(resumed) == printed(whole)
    assert weights_digest(model.state_dict()) == weights_digest(unbroken.state_dict())


def test_the_interrupted_model_itself_can_go_on(tmp_path, split):
    model = make_model()
    train(model, split, make_config(), folder=tmp_path, callback=stop_at(11))
    assert train(model, split, make_config(), folder=tmp_path).status is Status.DONE


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_saves_and_ends_with_its_exit_code(tmp_path, split, number, code):
    history = train(
        make_model(), split, make_config(), folder=tmp_path, callback=stop_at(5, number)
    )
    assert history.exit_code == code
    assert (tmp_path / "update-00000005.json").exists()


def test_a_finished_run_is_not_trained_again(tmp_path, split, validation):
    first = make_model()
    history = train(first, split, make_config(), validation=validation, folder=tmp_path)
    second = make_model()
    again = train(
        second, split, make_config(), validation=validation, folder=tmp_path, callback=pytest.fail
    )
    assert again == history
    assert weights_digest(first.state_dict()) == weights_digest(second.state_dict())


def test_a_damaged_checkpoint_costs_its_updates_only_and_is_said(tmp_path, split):
    unbroken = make_model()
    train(unbroken, split, make_config())
    train(make_model(), split, make_config(), folder=tmp_path, callback=stop_at(10))
    path = tmp_path / "update-00000010.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    lines = []
    model = make_model()
    history = train(model, split, make_config(), folder=tmp_path, log=lines.append)
    assert "update-00000010.json is damaged" in lines[0]
    assert lines[1] == "resumed at update 7 of 30"
    assert history.notes == lines[:1]
    assert weights_digest(model.state_dict()) == weights_digest(unbroken.state_dict())


@pytest.mark.parametrize(
    ("model", "config", "message"),
    [
        ({}, {"learning_rate": 0.5}, "training.learning_rate = 0.01 where this run has 0.5"),
        ({"dim": 16}, {}, "model.config.dim = 8 where this run has 16"),
        ({"seed": 1}, {}, "`model` must have the first weights of the run in .*same seed"),
    ],
)
def test_refuses_to_go_on_with_another_run(tmp_path, split, model, config, message):
    train(make_model(), split, make_config(), folder=tmp_path, callback=stop_at(3))
    with pytest.raises(ValueError, match=message):
        train(make_model(**model), split, make_config(**config), folder=tmp_path)


def test_refuses_to_go_on_with_other_data(tmp_path, split):
    train(make_model(), split, make_config(), folder=tmp_path, callback=stop_at(3))
    other = replace(split, labels=1 - split.labels)
    with pytest.raises(ValueError, match=r"data\.training\.sha256"):
        train(make_model(), other, make_config(), folder=tmp_path)


def test_refuses_to_choose_by_the_test_split(split):
    with pytest.raises(ValueError, match="`validation` must not be the test split"):
        train(make_model(), split, make_config(), validation=replace(split, name="test"))


def test_a_loss_beyond_its_bound_ends_the_run_as_diverged(tmp_path, split):
    config = make_config(loss_bound=0.01)
    history = train(make_model(), split, config, folder=tmp_path)
    assert (history.status, history.update, history.exit_code) == (Status.DIVERGED, 0, 0)
    assert "in training after 0 updates, where at most a loss of 0.01" in history.reason
    again = train(make_model(), split, config, folder=tmp_path, callback=pytest.fail)
    assert again == history


def test_nan_ends_the_run_as_diverged_with_the_weights_before_it(split):
    model = make_model()
    seen = {}

    def poison(history, point):
        seen[history.update] = weights_digest(model.state_dict())
        if history.update == 4:
            model.head.bias.register_hook(lambda gradient: gradient * float("nan"))

    history = train(model, split, make_config(), callback=poison)
    assert (history.status, history.update) == (Status.DIVERGED, 4)
    assert "gradient norm nan" in history.reason
    assert weights_digest(model.state_dict()) == seen[4]


def test_nan_in_validation_is_a_divergence_too(split, validation):
    model = make_model()

    def spoil(module, inputs, output):
        return output if module.training else output * float("nan")

    model.register_forward_hook(spoil)
    history = train(model, split, make_config(), validation=validation)
    assert (history.status, history.update) == (Status.DIVERGED, 8)
    assert "loss nan in validation after 8 updates" in history.reason


def test_patience_stops_a_run_that_no_longer_gets_better(split, validation):
    config = make_config(updates=400, evaluate_every=5, patience=3)
    history = train(make_model(), split, config, validation=validation)
    assert history.status is Status.STOPPED
    assert history.update == history.best.update + 15 < 400


@pytest.mark.parametrize("keep", Keep)
def test_a_run_ends_with_the_weights_it_was_asked_for(split, validation, keep):
    model = make_model()
    # At a rate this high the first of the best is not the last.
    config = make_config(learning_rate=0.3, schedule="constant", keep=keep, evaluate_every=3)
    history = train(model, split, config, validation=validation)
    assert history.best.update < history.validations[-1].update
    wanted = history.best if keep is Keep.BEST else history.validations[-1]
    found = evaluate(model, validation)
    assert found.accuracy == wanted.accuracy
    assert found.loss == pytest.approx(wanted.loss, rel=1e-4)


def test_accumulated_gradient_is_that_of_one_large_batch(split):
    model = make_model(dropout=0.0).double()
    sized = Batches(split, 200)
    (part,) = sized.plan(0)[:1]
    pieces = [part._replace(indices=part.indices[a:b]) for a, b in ((0, 5), (5, 6), (6, 20))]
    config = make_config(label_smoothing=0.1)
    gradients = []
    for group in ([part._replace(indices=part.indices[:20])], pieces):
        model.zero_grad()
        found = accumulate_gradient(model, [sized.fill(each) for each in group], config, labels=20)
        assert found.labels == 20
        gradients.append([each.grad.clone() for each in model.parameters()])
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-13)


def test_clipping_bounds_what_is_applied_and_records_what_was_found(split):
    norms = {}
    for clip in (None, 1e-3):
        history = train(make_model(), split, make_config(clip=clip, updates=6, log_every=1))
        norms[clip] = history.points[0].gradient_norm
    assert norms[None] == norms[1e-3] > 1e-3


def test_the_cursor_counts_batches_whatever_the_grouping(split):
    config = make_config(updates=13, batch_size=8, accumulate=2, log_every=1)
    history = train(make_model(), split, config)
    batches = len(Batches(split, 8).plan(0))
    assert history.cursor == (25 // batches, 25 % batches + 1)
    assert history.tokens >= len(split.tokens)
