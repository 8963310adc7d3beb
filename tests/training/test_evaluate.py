from dataclasses import replace

import numpy as np
import pytest
import torch

from depthpde.data.batching import Batch, Batches
from depthpde.data.task import TaskKind
from depthpde.models.config import ModelConfig
from depthpde.models.language import LanguageModel
from depthpde.models.vision import VisionTransformer
from depthpde.training.evaluate import (
    IGNORED,
    count_targets,
    cross_entropy,
    evaluate,
    model_inputs,
    predict,
)
from training.counting import LENGTH, make_model, make_split


def test_predictions_stand_in_the_splits_order_and_give_the_accuracy(split):
    model = make_model().eval()
    found = evaluate(model, split, batch_size=7)
    for index in range(0, len(split), 17):
        tokens = torch.from_numpy(split.ids(index))[None]
        assert found.predictions[index] == model(tokens, tokens > 0).argmax()
    right = (found.predictions.numpy() == split.labels).mean()
    assert found.accuracy == pytest.approx(100 * right)
    assert found.targets == len(split)


def test_evaluation_does_not_depend_on_the_batch_size(split):
    model = make_model()
    one, other = evaluate(model, split, batch_size=5), evaluate(model, split, batch_size=64)
    assert torch.equal(one.predictions, other.predictions)
    assert one.loss == pytest.approx(other.loss, rel=1e-5)  # float32 logits


def test_evaluation_changes_nothing(split):
    model = make_model().train()
    before = {name: each.clone() for name, each in model.state_dict().items()}
    state = torch.get_rng_state()
    evaluate(model, split)
    assert model.training
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(before[name], each) for name, each in model.state_dict().items())


def test_pairs_are_judged_with_both_documents(split):
    random = np.random.default_rng(0)
    chosen = random.integers(0, len(split), (40, 2)).astype(np.uint32)
    labels = (split.labels[chosen[:, 0]] == split.labels[chosen[:, 1]]).astype(np.uint8)
    paired = replace(split, kind=TaskKind.PAIR, pairs=chosen, labels=labels)
    model = make_model(documents=2)
    found = evaluate(model, paired)
    assert found.predictions.shape == (40,)
    swapped = evaluate(model, replace(paired, pairs=chosen[:, ::-1].copy()))
    assert swapped.loss != found.loss, "the head sees which document is which"


def test_language_is_judged_token_by_token(split):
    text = replace(make_split(count=300), kind=TaskKind.LANGUAGE, labels=None)
    config = ModelConfig(dim=8, blocks=1, heads=2, hidden=16, vocabulary=3, length=LENGTH)
    model = LanguageModel(config, generator=torch.Generator().manual_seed(0))
    found = evaluate(model, text)
    assert found.predictions is None
    assert found.targets == sum(b.labels.numel() for b in Batches(text).epoch(0))
    assert 0.3 < found.loss < 3.0


def test_windows_of_a_text_are_told_as_with_a_mask_that_is_all_true():
    text = replace(make_split(count=300), kind=TaskKind.LANGUAGE, labels=None)
    config = ModelConfig(dim=8, blocks=1, heads=2, hidden=16, vocabulary=3, length=LENGTH)
    model = LanguageModel(config, generator=torch.Generator().manual_seed(0)).double()
    batch = next(Batches(text).once())
    masked = replace(batch, valid_mask=torch.ones_like(batch.tokens, dtype=torch.bool))
    assert len(model_inputs(model, batch)) == 1
    torch.testing.assert_close(predict(model, batch), predict(model, masked))


def test_smoothing_is_the_mixture_it_says():
    logits = torch.tensor([[2.0, -1.0, 0.5]], dtype=torch.float64)
    logs = torch.log_softmax(logits, dim=-1)[0]
    wanted = -(0.9 * logs[0] + 0.1 * logs.mean())
    assert float(cross_entropy(logits, torch.tensor([0]), smoothing=0.1)) == pytest.approx(
        float(wanted)
    )


def test_prediction_hands_the_mask_over(split):
    model = make_model().eval()
    batch = next(Batches(split, 8).epoch(0))
    masked = replace(batch, valid_mask=torch.ones_like(batch.valid_mask))
    assert not torch.equal(predict(model, batch), predict(model, masked))


def test_a_mask_without_padding_is_left_out_and_changes_nothing_but_rounding(split):
    model, seen = make_model().double().eval(), []
    batch = next(Batches(split, 8).epoch(0))
    full = replace(batch, valid_mask=torch.ones_like(batch.valid_mask))
    model.register_forward_pre_hook(lambda module, given: seen.append(given[1]))
    torch.testing.assert_close(predict(model, full), model(full.tokens, full.valid_mask))
    assert seen[0] is None
    predict(model, batch)
    assert torch.equal(seen[-1], batch.valid_mask)


def test_ignored_labels_have_no_say():
    logits = torch.randn(2, 3, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    labels = torch.tensor([[1, IGNORED, 4], [IGNORED, IGNORED, 0]])
    kept = torch.stack((logits[0, 0], logits[0, 2], logits[1, 2]))
    wanted = cross_entropy(kept, torch.tensor([1, 4, 0]), smoothing=0.1)
    assert cross_entropy(logits, labels, smoothing=0.1).item() == pytest.approx(wanted.item())
    assert count_targets(labels) == 3
    assert cross_entropy(logits, torch.full_like(labels, IGNORED)) == 0


def test_a_model_of_patches_is_given_images_and_no_mask(split):
    config = ModelConfig(dim=8, blocks=1, heads=2, patch=2, grid=(2, 3), classes=2)
    model = VisionTransformer(config, generator=torch.Generator().manual_seed(0)).eval()
    tokens = torch.arange(48).reshape(2, 24)
    batch = Batch(tokens, torch.ones_like(tokens, dtype=torch.bool), torch.zeros(2).long())
    (images,) = model_inputs(model, batch)
    assert images.shape == (2, 1, 4, 6)
    assert images[1, 0, 2, 3] == pytest.approx((24 + 2 * 6 + 3) / 255)
    assert torch.equal(predict(model, batch), model(images))
