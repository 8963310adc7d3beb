"""The doctor during training: the same training to the bit, a known cost, plain lines."""

import json
import os
import signal
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from depthpde.doctor.alarms import live
from depthpde.doctor.alarms.live import SEQUENCES, Doctor, same_call
from depthpde.doctor.diagnosis import judge
from depthpde.doctor.probe import probe
from depthpde.layers.diffusion import Diffusion
from depthpde.models.classifier import Classifier
from depthpde.models.config import ModelConfig
from depthpde.training.config import TrainingConfig
from depthpde.training.loop import train
from doctor.patients import CLASSES, classifier
from doctor.zoo import VALIDATION
from insertion.nano import GPT, NANO, WIDTH, WORDS
from training.counting import make_config, make_model, make_split

CASE = VALIDATION[1]


def fit(model, updates, doctor=None, clip=None, seed=0):
    """A plain loop, with dropout and all."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    draw = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    model.train()
    for _ in range(updates):
        ids = torch.randint(1, CASE.words, (12, CASE.length), generator=draw)
        labels = torch.randint(0, CLASSES, (12,), generator=draw)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(ids), labels).backward()
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        if doctor is not None:
            doctor.step()
        optimizer.step()
    return model


def fresh(**changes):
    return classifier(CASE, dropout=0.1, **changes).model


def test_a_watched_training_equals_an_unwatched_one_to_the_bit():
    plain, watched = fit(fresh(), 7), fresh()
    with Doctor(watched, every=2, budget=None, log=lambda line: None) as doctor:
        fit(watched, 7, doctor)
    assert [each["update"] for each in doctor.history] == [1, 2, 4, 6]
    for one, other in zip(plain.parameters(), watched.parameters(), strict=True):
        assert torch.equal(one, other)
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in watched.modules())
    assert not any(w._post_accumulate_grad_hooks for w in watched.parameters())
    assert watched.training


def test_the_history_is_one_line_of_json_a_look(tmp_path):
    path = tmp_path / "run" / "doctor.jsonl"
    with Doctor(model := fresh(), every=2, budget=None, path=path, log=lambda line: None) as doctor:
        fit(model, 4, doctor)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [each["update"] for each in lines] == [1, 2, 4]
    last = lines[-1]
    assert last["grade"] == "healthy"
    assert last["verdicts"]["rank collapse"] == "healthy"
    assert len(last["series"]["drift.cosine"]) == CASE.blocks + 1
    assert {"values", "evidence", "unmeasured", "overhead", "seconds"} <= set(last)


def test_gradients_are_heard_before_they_are_clipped():
    model = fresh()
    with Doctor(model, every=1, budget=None, log=lambda line: None) as doctor:
        fit(model, 1, doctor, clip=1e-6)
    series = doctor.diagnosis.trajectory
    assert series["gradient.amplification"]["block 4"] == 1.0
    assert series["gradient.weights"]["block 1"] > 1e-4
    assert "gradients" not in doctor.diagnosis.unmeasured


def test_gradients_heard_are_those_of_the_loss():
    model = fresh().eval()
    ids = torch.randint(1, CASE.words, (4, CASE.length))
    labels = torch.zeros(4, dtype=torch.long)
    with Doctor(model, budget=None, log=lambda line: None) as doctor:
        nn.functional.cross_entropy(model(ids), labels).backward()
        doctor.step()
    from depthpde.doctor.probe import probe

    wanted = probe(model, ids, labels=labels, baseline=False)
    heard = doctor.diagnosis.trajectory
    for name in ("gradient.stream", "gradient.weights"):
        assert heard[name].finite() == pytest.approx(wanted[name].finite(), rel=1e-5)


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still but for what is added to it; a look takes three seconds."""
    now = SimpleNamespace(time=0.0)
    monkeypatch.setattr(live, "time", SimpleNamespace(perf_counter=lambda: now.time))

    def slowly(*printed):
        now.time += 3.0
        return judge(*printed)

    monkeypatch.setattr(live, "judge", slowly)
    return now


def test_it_stays_within_its_budget_and_says_what_it_cost(clock):
    output = []
    model = fresh()
    with Doctor(model, every=1, budget=0.2, log=output.append) as doctor:
        for _ in range(60):
            clock.time += 1.0
            fit(model, 1, doctor)
    looks = [each["update"] for each in doctor.history]
    assert looks[0] == 1
    assert 3 <= len(looks) <= 5, "others were put off"
    assert all(each["overhead"] <= 0.2 for each in doctor.history[1:])
    assert output[-1].startswith(f"doctor: {len(looks)} looks, every 1 updates, took ")
    assert output[-1].endswith(f"; healthy at the last, update {looks[-1]} of 60")
    assert "% of the training time; " in output[-1]


def test_it_speaks_when_the_grade_changes():
    output = []
    model = fresh()
    with Doctor(model, every=2, budget=None, log=output.append) as doctor:
        fit(model, 2, doctor)
        with torch.no_grad():
            for block in model.encoder.blocks:
                block.reaction.out.weight.zero_().requires_grad_(False)
        fit(model, 2, doctor)
    assert len(output) == 2
    assert output[0].startswith("doctor · update 4 · ill · weights: encoder.blocks.0.reaction.out")


def test_our_own_trainer_takes_it_as_watch_and_trains_the_same():
    split, settings = make_split(), TrainingConfig(updates=6, warmup=1, batch_size=8)

    def trained(watched):
        config = ModelConfig(
            dim=16, vocabulary=split.vocabulary, length=split.length, classes=split.classes
        )
        model = Classifier(config, generator=torch.Generator().manual_seed(0))
        doctor = Doctor(model, every=3, budget=None, log=lambda line: None) if watched else None
        train(model, split, settings, callback=doctor)
        return model, doctor

    plain, _ = trained(watched=False)
    model, doctor = trained(watched=True)
    assert [each["update"] for each in doctor.history] == [2, 3, 6], "it was not there at 1"
    weights = zip(plain.parameters(), model.parameters(), strict=True)
    assert all(torch.equal(one, other) for one, other in weights)


def attached(model):
    return any(each._forward_hooks or each._forward_pre_hooks for each in model.modules())


@pytest.mark.parametrize("end", ["done", "diverged", "interrupted"])
def test_no_hook_is_left_when_a_training_ends_while_it_listens(end):
    settings = {"diverged": {"loss_bound": 1e-3}, "interrupted": {"updates": 9}}.get(end, {})
    split, model = make_split(), make_model()
    config = make_config(**{"updates": 3, "warmup": 1, **settings})
    output = []
    doctor = Doctor(model, every=4, budget=None, log=output.append)

    class Watch:
        close = doctor.close

        def __call__(self, history, now):
            doctor(history, now)
            if end == "interrupted" and now.update == 3:
                os.kill(os.getpid(), signal.SIGINT)

    if end == "diverged":
        doctor.__enter__()
    history = train(model, split, config, callback=Watch())
    assert history.status == end
    assert not attached(model)
    assert len(output) == (0 if end == "diverged" else 1), "what it cost is said once"
    doctor.close()
    assert len(output) == (0 if end == "diverged" else 1)


def test_a_wrapped_doctor_leaves_when_the_history_is_finished():
    model, config = make_model(), make_config(updates=3, warmup=1)
    doctor = Doctor(model, every=4, budget=None, log=lambda line: None)
    train(model, make_split(), config, callback=lambda history, now: doctor(history, now))
    assert not attached(model)


def test_a_validation_between_update_and_look_leaves_the_cut_as_it_was():
    split, model = make_split(), make_model()
    config = make_config(updates=2, warmup=1, evaluate_every=1, batch_size=12)
    doctor = Doctor(model, every=2, budget=None, log=lambda line: None)
    train(model, split, config, validation=make_split("validation", 5), callback=doctor)
    assert doctor.diagnosis.trajectory.sequences == SEQUENCES


def test_a_part_of_a_model_that_is_called_instead_of_the_whole_is_found():
    inner = fresh()

    class Holder(nn.Module):
        def __init__(self):
            super().__init__()
            self.model = inner

    with Doctor(Holder(), budget=None, log=lambda line: None) as doctor:
        inner(torch.randint(1, 9, (4, CASE.length))).sum().backward()
        doctor.step()
    assert doctor.diagnosis.trajectory.model == "Classifier"


def test_a_step_without_a_pass_waits_for_the_next():
    model = fresh()
    with Doctor(model, every=5, budget=None, log=lambda line: None) as doctor:
        doctor.step()
        assert doctor.history == []
        fit(model, 1, doctor)
    assert [each["update"] for each in doctor.history] == [2]


def test_a_pass_without_a_backward_leaves_gradients_out():
    model = fresh()
    with Doctor(model, log=lambda line: None) as doctor:
        with torch.no_grad():
            model(torch.randint(1, 9, (4, CASE.length)))
        doctor.step()
    assert doctor.diagnosis.unmeasured["gradients"] == "no backward pass was recorded"


def test_only_a_few_sequences_are_looked_at_again():
    ids, mask = torch.zeros(20, 7), torch.ones(20, 7)
    model = nn.Identity()
    assert same_call(model, (ids, mask), {}, (20, 7))[0].shape[0] == SEQUENCES
    assert same_call(model, (ids,), {}, (20, 20))[0].shape[0] == 20

    class Named(nn.Module):
        def forward(self, ids, mask=None, labels=None):
            return ids

    printed = same_call(Named(), (ids,), {"mask": mask, "labels": ids}, (20, 7))
    assert {name: len(each) for name, each in printed.items()} == {
        "ids": SEQUENCES,
        "mask": SEQUENCES,
    }


def test_refuses_a_compiled_model():
    model = fresh()
    compiled = torch.compile(model, backend="eager")
    compiled(torch.randint(1, 9, (2, CASE.length)))
    with pytest.raises(ValueError, match="must not be compiled when a doctor begins to watch"):
        Doctor(model)


def test_refuses_an_interval_or_a_budget_that_is_none():
    with pytest.raises(ValueError, match="`every` must be at least 1, got 0"):
        Doctor(fresh(), every=0)
    with pytest.raises(ValueError, match=r"`budget` must lie in \[1e-06, 1\], got 2"):
        Doctor(fresh(), budget=2.0)


class Leaking(GPT):
    """Causal but for a symmetric layer, which is still the identity."""

    def __init__(self):
        super().__init__()
        self.smooth = Diffusion(WIDTH, initial_ratio=0.0)
        self.h[0].register_forward_hook(lambda block, args, u: self.smooth(u))


def test_the_live_doctor_repeats_the_causality_check_while_training():
    model, lines = Leaking(), []
    ids = torch.randint(0, WORDS, (4, 8), generator=torch.Generator().manual_seed(1))
    with Doctor(
        model, every=2, budget=None, family=replace(NANO, causal=True), log=lines.append
    ) as d:
        for _ in range(4):
            model(ids, ids)[1].backward()
            d.step()
    assert len(d.history) >= 2
    assert all(each["verdicts"]["causal leak"] == "ill" for each in d.history)
    assert "leaks through smooth" in d.history[-1]["evidence"]["causal leak"]
    assert (model.smooth.ratio == 0).all()


def test_a_family_that_does_not_say_whether_it_is_causal_is_noted_where_the_future_is_seen():
    ids = torch.randint(0, WORDS, (4, 8), generator=torch.Generator().manual_seed(1))
    found = probe(Leaking(), (ids, ids), family=NANO, groups=())
    assert found.causal is False
    assert "this is a leak" in found.notes[-1]
    assert probe(GPT(), (ids, ids), family=NANO, groups=()).causal is True


def test_an_alarm_says_what_moved_first_and_stops_only_where_it_may(tmp_path):
    import torch

    from depthpde.doctor.alarms.live import AlarmStop

    def drive(on_alarm):
        model, lines, sunk = make_model(), [], []
        draw = torch.Generator().manual_seed(0)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        doctor = Doctor(
            model, every=10**6, pulse=1, budget=None, on_alarm=on_alarm, log=lines.append,
            path=tmp_path / f"{on_alarm}.jsonl", sink=lambda update, values: sunk.append(values),
        )  # fmt: skip
        with doctor:
            for update in range(1, 40):
                tokens = torch.randint(1, model.config.vocabulary, (4, 8), generator=draw)
                scale = 1.0 if update < 30 else 1e4
                (scale * model(tokens).square().mean()).backward()
                optimizer.step()
                doctor.step()
                optimizer.zero_grad()
                if update >= 30:
                    for group in optimizer.param_groups:
                        group["lr"] = 0.0
        return doctor, lines, sunk

    doctor, lines, sunk = drive("log")
    assert doctor.alarm is not None
    assert doctor.alarm.update in (31, 32)
    assert doctor.alarm.series.startswith("gradient of")
    assert any("moved first" in line for line in lines)
    assert any("doctor/alarm" in values for values in sunk)
    assert "moved first" in (tmp_path / "log.jsonl").read_text()
    with pytest.raises(AlarmStop, match=r"3[12].*checkpoint"):
        drive("stop")


def watched(updates, rate, **settings):
    """Train a small model at `rate(update)` under a doctor; return it and when it read."""
    model, read = make_model(), []
    draw = torch.Generator().manual_seed(0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    doctor = Doctor(
        model, every=10**6, budget=None, log=lambda line: None,
        sink=lambda update, values: read.append(update), **settings,
    )  # fmt: skip
    with doctor:
        for update in range(1, updates + 1):
            for group in optimizer.param_groups:
                group["lr"] = rate(update)
            tokens = torch.randint(1, model.config.vocabulary, (4, 8), generator=draw)
            model(tokens).square().mean().backward()
            doctor.step()
            optimizer.step()
            optimizer.zero_grad()
    return doctor, read


def test_the_first_readings_come_close_together_then_every_pulse():
    _, read = watched(260, lambda update: 1e-4)
    first = [1, *range(3, 178, 3)]
    assert read == [*first, *range(180, 261, 20)]
    assert len(first) == live.FIRST_READINGS
    _, read = watched(9, lambda update: 1e-4, pulse=2)
    assert read == [1, 2, 4, 6, 8]


def test_a_rate_that_jumps_in_the_first_hundred_updates_is_found_at_once():
    doctor, _ = watched(90, lambda update: 1e-4 if update < 70 else 1e-1)
    assert doctor.alarm is not None
    assert 70 < doctor.alarm.update <= 76
    assert doctor.alarm.series.startswith("update of")


def test_a_warm_up_is_no_alarm():
    doctor, _ = watched(150, lambda update: 1e-3 * min(1.0, update / 100))
    assert doctor.alarm is None


def test_what_an_update_moves_is_the_same_number_at_any_interval():
    """A rate that stays gives readings of one size, before and after they become rare."""
    moved = []
    model = make_model()
    doctor = Doctor(
        model, every=10**6, budget=None, log=lambda line: None,
        sink=lambda update, values: moved.append((update, values)),
    )  # fmt: skip
    with doctor:
        for update in range(1, 261):
            model(torch.ones(2, 8, dtype=torch.long)).sum().backward()
            doctor.step()
            with torch.no_grad():  # to and fro: nothing is left of it over many updates
                for weight in model.parameters():
                    weight.add_(1e-3 * (-1) ** update)
            model.zero_grad()
    sizes = [value for update, values in moved if update > 9
             for name, value in values.items() if name == "doctor/update of block 1"]  # fmt: skip
    assert len(sizes) > 50
    assert max(sizes) < 1.1 * min(sizes)


def test_refuses_another_word_for_an_alarm():
    with pytest.raises(ValueError, match="on_alarm"):
        Doctor(make_model(), on_alarm="pause")


def test_a_run_is_rolled_back_on_request_and_stopped_at_the_fourth_time(tmp_path):
    from depthpde.doctor.alarms.live import MOST_ROLLBACKS, AlarmStop

    model, kept, restored = make_model(), {}, []
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def weights():
        return model.encoder.embedding.weight.detach().clone()

    def log(line):
        if "back to the weights" in line:
            restored.append(weights())

    doctor = Doctor(
        model, every=5, pulse=1, budget=None, on_alarm="rollback", optimizer=optimizer,
        log=log, path=tmp_path / "doctor.jsonl",
    )  # fmt: skip

    def drive():
        draw = torch.Generator().manual_seed(0)
        for update in range(1, 80):
            tokens = torch.randint(1, model.config.vocabulary, (4, 8), generator=draw)
            scale = 1.0 if update < 30 else 1e4
            (scale * model(tokens).square().mean()).backward()
            optimizer.param_groups[0]["lr"] = 1e-3 if update < 30 else 1e-7
            optimizer.step()
            kept[update] = weights()
            doctor.step()
            optimizer.zero_grad()

    with doctor, pytest.raises(AlarmStop, match="checkpoint"):
        drive()
    assert len(doctor.rollbacks) == len(restored) == MOST_ROLLBACKS
    back = doctor.rollbacks[0][1]
    assert back < 30
    assert torch.equal(restored[0], kept[back])
    assert '"rollback"' in (tmp_path / "doctor.jsonl").read_text()


def test_refuses_a_rollback_without_an_optimizer():
    with pytest.raises(ValueError, match=r"rollback.*optimizer"):
        Doctor(make_model(), on_alarm="rollback")
