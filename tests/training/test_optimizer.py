import pytest
import torch

from depthpde.training.optimizer import (
    build_optimizer,
    learned_ratios,
    optimizer_tensors,
    restore_optimizer,
    set_rate,
)
from training.counting import make_config, make_model


def groups_by_name(model, optimizer):
    names = {parameter: name for name, parameter in model.named_parameters()}
    return {names[each]: group for group in optimizer.param_groups for each in group["params"]}


def test_only_matrices_decay_and_only_ratios_are_faster():
    model = make_model()
    config = make_config(weight_decay=0.3, ratio_gain=7.0)
    optimizer = build_optimizer(model, config)
    groups = groups_by_name(model, optimizer)
    rate = set_rate(optimizer, config, 2)
    assert rate == pytest.approx(config.learning_rate * 3 / 5)
    for name, parameter in model.named_parameters():
        ratio = name.endswith("theta")
        assert groups[name]["weight_decay"] == (0.3 if parameter.ndim > 1 else 0.0), name
        assert groups[name]["lr"] == pytest.approx(rate * (7.0 if ratio else 1.0)), name
    assert sum(name.endswith("theta") for name in groups) == 1


def test_a_larger_gain_moves_the_ratio_farther():
    def moved(gain):
        model = make_model(dropout=0.0)  # both gains see the same gradients
        config = make_config(ratio_gain=gain)
        optimizer = build_optimizer(model, config)
        before = learned_ratios(model)
        for _ in range(3):
            set_rate(optimizer, config, 10)
            optimizer.zero_grad()
            model(torch.tensor([[1, 2, 2, 1]])).sum().backward()
            optimizer.step()
        (change,) = (abs(after - before[name]) for name, after in learned_ratios(model).items())
        return change

    assert moved(10.0) > 5 * moved(1.0) > 0


def test_optimizer_memory_survives_a_round_trip():
    model = make_model()
    first = build_optimizer(model, make_config())
    model(torch.tensor([[1, 2, 2, 1]])).sum().backward()
    first.step()
    saved = optimizer_tensors(model, first)
    second = build_optimizer(model, make_config())
    restore_optimizer(model, second, saved)
    again = optimizer_tensors(model, second)
    assert saved.keys() == again.keys()
    assert all(torch.equal(saved[name], again[name]) for name in saved)
    assert any(name.endswith("/exp_avg_sq") for name in saved)


def test_frozen_parameters_are_left_out():
    model = make_model()
    model.encoder.requires_grad_(False)
    optimizer = build_optimizer(model, make_config())
    assert all(name.startswith("head") for name in groups_by_name(model, optimizer))


def test_refuses_a_model_without_trainable_parameters():
    model = make_model().requires_grad_(False)
    with pytest.raises(ValueError, match="`model` must have parameters that require gradients"):
        build_optimizer(model, make_config())
