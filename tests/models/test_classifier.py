import pytest
import torch

from depthpde.layers.registry import LayerKind
from depthpde.models.classifier import Classifier
from depthpde.models.config import ModelConfig
from depthpde.models.position import ROUTES, Position


@pytest.mark.parametrize("pooling", ["mean", "max", "cls"])
def test_padding_changes_no_logit(small, tokens, mask, pooling):
    model = Classifier(small(pooling=pooling, positions=("after_embedding", "between_blocks")))
    model.double()
    alone = torch.cat(
        [model(row[None, : int(kept.sum())]) for row, kept in zip(tokens, mask, strict=True)]
    )
    torch.testing.assert_close(model(tokens, mask), alone, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", list(LayerKind))
@pytest.mark.parametrize(
    ("position", "route"), [(each, route) for each in Position for route in ROUTES[each]]
)
def test_every_parameter_of_every_model_learns(small, tokens, mask, position, route, kind):
    model = Classifier(small(positions=(position,), route=route, layer=kind))
    torch.nn.functional.cross_entropy(model(tokens, mask), torch.tensor([0, 1, 2])).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name


def test_two_documents_are_encoded_apart_and_compared(small, tokens, mask):
    model = Classifier(small(documents=2)).double()
    other, other_mask = tokens.flip(0)[:, :9], mask.flip(0)[:, :9]
    u, v = model.represent(tokens, mask), model.represent(other, other_mask)
    wanted = model.head(torch.cat((u, v, u * v, u - v), dim=-1))
    assert torch.equal(model(tokens, mask, other, other_mask), wanted)
    assert not torch.equal(wanted, model(other, other_mask, tokens, mask))


def test_a_task_makes_the_model_that_fits_it():
    from depthpde.data.tasks import TASKS

    config = ModelConfig(dim=8, blocks=1, positions=("after_embedding",), layer="multiscale")
    for name in ("listops", "retrieval", "image"):
        model = Classifier(config, task=TASKS[name])
        assert model.config.length == TASKS[name].length
        assert model.config.documents == (2 if name == "retrieval" else 1)
    pair = torch.randint(257, (2, 20))
    model = Classifier(config, task=TASKS["retrieval"])
    assert model(pair, None, pair).shape == (2, 2)


def test_refuses_what_is_no_task():
    for task, name in (("listops-mini", "listops-mini"), (3, "listops-mini")):
        with pytest.raises(ValueError, match=rf"got {task!r}; use depthpde.tasks\['{name}'\]"):
            Classifier(ModelConfig(), task=task)


def test_refuses_a_missing_and_a_superfluous_second_document(small, tokens):
    with pytest.raises(ValueError, match=r"`second_inputs` must be given.*2 document"):
        Classifier(small(documents=2))(tokens)
    with pytest.raises(ValueError, match=r"`second_inputs` must be left out.*1 document"):
        Classifier(small())(tokens, None, tokens)


def test_refuses_to_be_built_without_classes(small):
    with pytest.raises(ValueError, match=r"`classes`.*the model"):
        Classifier(small(classes=None))


def test_a_small_classifier_learns_which_token_is_the_majority(small):
    generator = torch.Generator().manual_seed(0)
    model = Classifier(
        small(blocks=1, classes=2, vocabulary=2, positions=("after_embedding",)),
        generator=generator,
    )
    tokens = torch.randint(2, (64, 11), generator=generator)
    labels = (tokens.sum(dim=1) > 5).long()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(40):
        loss = torch.nn.functional.cross_entropy(model(tokens), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.2 * losses[0]


def test_a_model_compiles_whole(small, tokens, mask):
    model = Classifier(small(positions=("after_embedding", "between_blocks")))
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(tokens, mask), model(tokens, mask), rtol=0, atol=1e-5)


def test_a_model_runs_under_autocast(small, tokens, mask):
    model = Classifier(small(positions=tuple(Position)))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(tokens, mask)
    assert torch.isfinite(logits).all()
    torch.testing.assert_close(logits.float(), model(tokens, mask), rtol=0, atol=0.1)
