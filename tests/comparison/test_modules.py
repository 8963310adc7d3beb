"""Anybody's module is trained as ours are, from seeds that two models share."""

import signal

import numpy as np
import pytest
import torch
from torch import nn

import depthpde as dp
from depthpde.comparison.modules import AnyModule


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter = nn.Linear(2, 8)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.leave = nn.Linear(8, 2)

    def forward(self, x):
        return self.leave(self.layer(self.enter(x)).mean(1))


def with_diffusion():
    model = Net()
    dp.insert(model.layer, "after_attention")
    return model


def test_an_insertion_that_does_nothing_yet_is_a_perfect_pair(task, tmp_path):
    variants = {"plain": Net, "diffusion": with_diffusion}
    found = dp.compare(task, variants, seeds=2, training={"updates": 2}, out=tmp_path)
    assert found.results is None
    first, second = found.entrants
    assert first.scores == pytest.approx(second.scores, abs=13)  # 8 test examples: one may flip
    assert second.parameters == first.parameters + 8
    assert str(second.role) == "ours"
    assert "recorded" not in found.advice()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("valid_mask", torch.tensor([[True, False]])),
        ("attention_mask", torch.tensor([[1, 0]])),
        ("src_key_padding_mask", torch.tensor([[False, True]])),
    ],
)
def test_the_mask_goes_where_a_module_expects_it(name, value):
    seen = {}
    scope = {"seen": seen, "torch": torch}
    exec(f"def forward(self, x, {name}=None):\n seen['mask'] = {name}\n return x[:, 0]", scope)
    module = type("M", (nn.Module,), {"forward": scope["forward"]})()
    AnyModule(module, 3)(torch.zeros(1, 2, 3), torch.tensor([[True, False]]))
    assert torch.equal(seen["mask"], value)


def test_an_output_with_logits_is_read_and_another_width_refused():
    class HuggingFaceLike(nn.Module):
        def forward(self, input_ids, attention_mask=None):
            return type("Output", (), {"logits": input_ids.float()})()

    assert AnyModule(HuggingFaceLike(), 2)(torch.zeros(1, 2).long()).shape == (1, 2)
    with pytest.raises(ValueError, match="3 classes"):
        AnyModule(HuggingFaceLike(), 3)(torch.zeros(1, 2).long())


class Reckless(Net):
    """Its loss is out of every bound."""

    def forward(self, x):
        return 1e6 * super().forward(x)


def test_a_module_that_diverges_counts_as_the_largest_class(task, tmp_path):
    """It counted by the weights that it had kept."""
    small = {"seeds": 2, "training": {"updates": 2}, "out": tmp_path}
    variants = {"plain": Net, "reckless": Reckless}
    found = dp.compare(task, variants, **small)
    shares = dp.load(task, "test", out=tmp_path / "tasks").labels
    assert found.entrants[1].scores == {
        seed: 100.0 * max(shares.mean(), 1 - shares.mean()) for seed in (0, 1)
    }
    assert found.diverged() == ["reckless: 2 runs diverged, counted as the largest class"]
    by_loss = dp.compare(task, variants, endpoint="loss", **small)
    assert by_loss.entrants[1].scores == {}
    with pytest.raises(ValueError, match=r"'reckless' must have .* got 2 finished, 2 of them"):
        dp.compare(task, dict(reversed(variants.items())), endpoint="loss", **small)


class Lost(Net):
    """It is trained and validated, and answers the test split with no number."""

    read = 0

    def forward(self, x):
        self.read += not self.training
        return super().forward(x) * (float("nan") if self.read > 1 else 1.0)


def test_a_module_whose_test_loss_is_no_number_counts_as_the_largest_class(tmp_path):
    """It counted by the class that NaN is taken for; a comparison of settings takes the largest."""
    draw = np.random.default_rng(0)
    labels = (np.arange(40) % 4 > 0).astype(int)  # three quarters are of class 1, NaN of class 0
    uneven = dp.Task.from_arrays("uneven", draw.normal(size=(40, 10, 2)), labels)
    small = {"seeds": 1, "training": {"updates": 2, "evaluate_every": 2}, "out": tmp_path}
    found = dp.compare(uneven, {"plain": Net, "lost": Lost}, **small)
    share = 100.0 * dp.load(uneven, "test", out=tmp_path / "tasks").labels.mean()
    assert share > 50
    assert found.entrants[1].curve.updates == (2,), "its training ended as any other"
    assert found.entrants[1].scores == {0: share}
    assert found.diverged() == ["lost: 1 run diverged, counted as the largest class"]
    by_loss = dp.compare(uneven, {"plain": Net, "lost": Lost}, endpoint="loss", **small)
    assert by_loss.entrants[1].scores == {}


def test_ctrl_c_ends_a_comparison_of_functions(task, tmp_path):
    """What was trained half had been scored, and the next model was begun."""
    made = []

    class Slow(Net):
        def forward(self, x):
            if self.training:
                signal.raise_signal(signal.SIGINT)
            return super().forward(x)

    def slow():
        made.append(1)
        return Slow()

    with pytest.raises(KeyboardInterrupt, match="'slow' was cut off at update 1"):
        dp.compare(
            task, {"slow": slow, "plain": Net}, seeds=2, training={"updates": 9}, out=tmp_path
        )
    assert made == [1]
