"""The probe gives the model's own numbers, changes nothing, and says what it could not measure."""

import copy
import inspect
import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from depthpde.doctor.activations import watching
from depthpde.doctor.attention_weights import attention_weights
from depthpde.doctor.model_map import model_map
from depthpde.doctor.probe import probe, same_outputs
from depthpde.insertion.family import Family, NormOrder, into, out_of
from depthpde.insertion.insert import insert
from depthpde.models.classifier import Classifier
from depthpde.models.config import ModelConfig
from depthpde.models.language import LanguageModel
from insertion.zoo import ZOO, padding

CONFIG = ModelConfig(dim=16, blocks=3, heads=2, hidden=32, vocabulary=11, length=12, classes=3)


def classifier(seed=0, **changes):
    config = replace(CONFIG, **changes)
    return Classifier(config, generator=torch.Generator().manual_seed(seed)).eval()


def tokens(batch=4, length=12, words=11):
    return torch.randint(0, words, (batch, length), generator=torch.Generator().manual_seed(1))


def feed(animal, model):
    """What an animal of the zoo calls its model with, by name."""
    seen = {}

    def spy(*args, **kwargs):
        names = list(inspect.signature(model.forward).parameters)
        seen.update(zip(names, args, strict=False), **kwargs)
        return model(*args, **kwargs)

    animal.call(spy, animal.feed(), padding() if animal.pads else None)
    return seen


def first(output):
    return output if isinstance(output, torch.Tensor) else output[0]


@pytest.mark.parametrize("name", ZOO)
def test_every_family_is_measured_whole_with_outputs_equal_to_the_bit(name):
    model = ZOO[name].build()
    state = copy.deepcopy(model.state_dict())
    batch = feed(ZOO[name], model)
    found = probe(model, batch, loss=lambda output: first(output).square().mean())
    assert found.faithful is True
    assert set(found.missing) == {"coupling.nonlinear"}
    assert found.causal is ZOO[name].causal
    assert found.facts.get("leak") is None
    assert all(len(each.finite()) for each in found.values())
    assert len(found["drift.cosine"]) == found.blocks + 1
    assert all(torch.equal(state[key], value) for key, value in model.state_dict().items())
    assert all(weight.grad is None for weight in model.parameters())
    assert not any(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules())


def test_attention_made_again_equals_what_the_library_gives():
    from transformers import BertConfig, BertModel

    config = BertConfig(
        vocab_size=29, hidden_size=16, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=32, attn_implementation="eager",
    )  # fmt: skip
    model = BertModel(config).eval()
    mask = padding().long()
    ids = torch.randint(1, 29, mask.shape, generator=torch.Generator().manual_seed(0))
    body = model_map(model)
    with torch.no_grad(), watching(body) as activations:
        output = model(ids, attention_mask=mask, output_attentions=True)
    for block, theirs in enumerate(output.attentions):
        ours = attention_weights(body, activations, block)
        valid = mask.bool()[:, None, :, None].expand_as(theirs)
        torch.testing.assert_close(ours.weights[valid], theirs[valid])


@pytest.mark.parametrize("encoding", ["learned", "rotary"])
def test_attention_of_our_own_models_is_what_they_would_form(encoding):
    model = classifier(encoding=encoding, positions=("in_attention",))
    ids = tokens()
    body = model_map(model)
    with torch.no_grad(), watching(body) as activations:
        model(ids)
    for block in model.encoder.blocks:
        block.attention.explicit = True
    printed = {}
    stop = model.observe(
        lambda place, u: printed.setdefault(place.block, u) if place.part == "weights" else None
    )
    with torch.no_grad():
        model(ids)
    stop()
    for block in range(3):
        torch.testing.assert_close(
            attention_weights(body, activations, block).weights, printed[block]
        )


def test_attention_that_is_not_a_plain_softmax_is_refused_with_the_reason():
    model = ZOO["bert"].build()
    with torch.no_grad():
        inner = model.encoder.layer[1].attention.self
        plain = inner.forward
        inner.forward = lambda *args, **kwargs: (2 * plain(*args, **kwargs)[0], None)
    found = probe(model, feed(ZOO["bert"], model), baseline=False)
    assert "attention.entropy" not in found
    assert "not a plain softmax" in found.missing["attention"]
    with pytest.raises(ValueError, match=r"`attention.entropy` was not measured: weights made"):
        found["attention.entropy"]


def test_what_stands_at_padding_changes_no_number():
    model, ids = classifier(), tokens()
    mask = torch.arange(12) < torch.tensor([[12], [9], [5], [1]])
    one = probe(model, (ids, mask), baseline=False)
    other = probe(model, (torch.where(mask, ids, 3), mask), baseline=False)
    for name in one:
        assert one[name].finite() == pytest.approx(other[name].finite(), abs=1e-6), name


def test_a_series_is_labelled_by_depth_and_stands_beside_a_random_network():
    found = probe(classifier(), tokens())
    series = found["drift.cosine"]
    assert series.labels == ("embedding", "block 1", "block 2", "block 3")
    assert series["embedding"] == pytest.approx(1.0)
    assert series.baseline[0] == pytest.approx(1.0)
    assert "(random network: " in str(series)
    assert found["attention.entropy"].baseline is not None
    with pytest.raises(ValueError, match=r"`label` must be one of embedding, .*, got 'block 9'"):
        series["block 9"]
    with pytest.raises(ValueError, match=r"`name` must be one of .*did you mean 'drift.cosine'"):
        found["drift.cosin"]


def test_gradients_are_those_of_backward():
    model, ids, labels = classifier(), tokens(), torch.tensor([0, 1, 2, 0])
    found = probe(model, ids, labels=labels)
    loss = nn.functional.cross_entropy(model(ids), labels)
    loss.backward()
    block = model.encoder.blocks[1]
    wanted = math.sqrt(sum(float(w.grad.square().sum()) for w in block.parameters()))
    assert found["gradient.weights"]["block 2"] == pytest.approx(wanted, rel=1e-5)
    assert found["gradient.amplification"]["block 3"] == 1.0


def test_a_model_that_takes_labels_gives_its_own_loss():
    from transformers import BertConfig, BertForSequenceClassification

    config = BertConfig(
        vocab_size=29, hidden_size=16, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=32,
    )  # fmt: skip
    model = BertForSequenceClassification(config)
    found = probe(model, tokens(), labels=torch.tensor([0, 1, 1, 0]))
    assert "gradient.stream" in found
    assert model.training


def test_a_token_loss_and_a_frozen_embedding_have_gradients():
    config = ModelConfig(dim=16, blocks=2, heads=2, hidden=32, vocabulary=11, length=12)
    model = LanguageModel(config, generator=torch.Generator().manual_seed(0))
    model.encoder.embedding.requires_grad_(False)
    ids = tokens()
    found = probe(model, {"tokens": ids}, labels=ids)
    assert found["gradient.stream"]["embedding"] > 0
    assert found.facts["leak"] is None


def test_without_a_loss_gradients_are_said_to_be_missing():
    found = probe(classifier(), tokens())
    assert found.missing["gradient"] == "no loss given: pass labels= or a loss function"


def test_random_numbers_and_modes_are_left_as_they_were():
    model = classifier(dropout=0.5).train()
    model.encoder.blocks[0].eval()
    torch.manual_seed(5)
    state = torch.get_rng_state()
    probe(model, tokens())
    assert torch.equal(torch.get_rng_state(), state)
    assert model.training
    assert not model.encoder.blocks[0].training


def test_an_insertion_is_measured_against_its_bound_and_downstream():
    model = ZOO["bert"].build()
    insert(model, "after_embedding", initial_ratio=0.2)
    found = probe(model, feed(ZOO["bert"], model), baseline=False)
    (label,) = found["coupling.moved"].labels
    assert 0 < found["coupling.moved"][label] <= found["coupling.bound"][label]
    assert found.facts["insertion_change"] > 0
    assert found.facts["insertion_amplification"] > 0
    assert found["energy.cfl_margin"][label] == pytest.approx(0.6)


def test_the_filter_of_every_diffusion_layer_is_told():
    model = classifier(positions=("after_embedding",))
    found = probe(model, tokens(), baseline=False)
    gains = found["spectrum.transfer"][0]
    assert gains[0] == pytest.approx(1.0)
    assert gains == sorted(gains, reverse=True)
    assert gains[-1] == pytest.approx(1 - 4 * 0.125)
    assert isinstance(found.facts["energy_rises"], list)


def test_a_filter_that_depends_on_the_content_is_said_to_have_none():
    model = classifier(positions=("after_embedding",), layer="adaptive")
    found = probe(model, tokens(), baseline=False)
    assert "is linear along one dimension" in found.missing["spectrum.transfer"]


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_every_precision_is_measured(dtype):
    mask = torch.arange(12) < torch.tensor([[12], [9], [5], [1]])
    found = probe(classifier().to(dtype), (tokens(), mask), labels=torch.tensor([0, 1, 2, 0]))
    assert found.faithful
    assert set(found.missing) == set()
    assert all(each.finite() for each in found.values())


def test_an_insertion_that_is_the_identity_changes_nothing():
    model = ZOO["gpt2"].build()
    insert(model, "after_ffn")
    found = probe(model, feed(ZOO["gpt2"], model), baseline=False)
    assert found.facts["insertion_change"] == 0.0


def test_a_described_family_is_measured_without_its_attention():
    family = Family(
        name="mine", norm=NormOrder.PRE, norms=("norm",), attention=out_of("mix"),
        ffn=out_of("act"), width="act",
    )  # fmt: skip
    found = probe(Mine(), torch.randn(2, 5, 8), family=family)
    assert found.blocks == 2
    assert "does not name where queries and keys are" in found.missing["attention"]
    assert "rank.residual" in found


def test_an_output_without_tensors_leaves_the_self_check_out():
    assert same_outputs("words", "words") is None
    model = Talker(ZOO["torch_layer"].build())
    found = probe(model, torch.randn(2, 5, 16), baseline=False)
    assert found.faithful is None
    assert "holds no tensor" in found.missing["self-check"]


def test_a_model_that_does_not_repeat_itself_is_noticed():
    found = probe(Moody(ZOO["torch_layer"].build()), torch.randn(2, 5, 16), baseline=False)
    assert found.faithful is False
    assert "does not repeat itself" in found.notes[0]


def test_activation_checkpointing_is_seen_once():
    model = ZOO["bert"].build()
    model.gradient_checkpointing_enable()
    found = probe(model, feed(ZOO["bert"], model), loss=lambda o: o[0].square().mean())
    assert len(found["gradient.stream"].finite()) == 3


def test_of_two_documents_the_first_is_recorded():
    model, ids, other = classifier(documents=2), tokens(), tokens(length=7)
    both = {"inputs": ids, "second_inputs": other}
    one = probe(model, both, baseline=False)
    swapped = probe(model, {"inputs": ids, "second_inputs": other.flip(0)}, baseline=False)
    assert one.tokens == ids.numel()
    assert one["rank.residual"].values == swapped["rank.residual"].values


def test_sequences_of_padding_alone_are_left_out_and_said():
    mask = torch.ones(4, 12, dtype=torch.bool)
    mask[1] = False
    found = probe(classifier(), (tokens(), mask))
    assert found.sequences == 3
    assert found.notes == ("1 of 4 sequences are padding alone and were left out",)
    assert all(each.finite() for each in found.values())


def test_long_sequences_are_looked_at_in_part(monkeypatch):
    monkeypatch.setattr("depthpde.doctor.activations.BUDGET", 2 * 2 * 12 * 12)
    found = probe(classifier(), tokens())
    assert found.notes == ("attention was measured on 2 of 4 sequences",)


def test_refuses_a_model_of_no_known_family_and_says_how_to_describe_it():
    with pytest.raises(ValueError, match=r"describe its block with .*Family"):
        probe(nn.Sequential(nn.Linear(4, 4)), torch.zeros(1, 2, 4))


def test_refuses_a_batch_on_another_device():
    with pytest.raises(ValueError, match="`batch` must be on the model's device cpu, got meta"):
        probe(classifier(), tokens().to("meta"))


def test_refuses_an_empty_batch():
    with pytest.raises(ValueError, match=r"at least one sequence, got a tensor of shape \[0, 12\]"):
        probe(classifier(), tokens(0))
    with pytest.raises(ValueError, match="`batch` must hold at least one tensor, got none"):
        probe(classifier(), {"inputs": None})


def test_refuses_what_is_no_batch():
    with pytest.raises(
        ValueError, match=r"`batch` must be a tensor, a tuple or a mapping.*got str"
    ):
        probe(classifier(), "words")


def test_refuses_padding_alone():
    with pytest.raises(ValueError, match="at least one real token, got padding alone"):
        probe(classifier(), (tokens(), torch.zeros(4, 12, dtype=torch.bool)))


def test_refuses_a_compiled_model():
    model = classifier()
    compiled = torch.compile(model, backend="eager")
    with torch.no_grad():
        compiled(tokens())
    with pytest.raises(ValueError, match="`model` must not be compiled when probing"):
        probe(model, tokens())


def test_refuses_blocks_that_pass_no_tensors_on():
    family = Family(
        name="mine", norm=NormOrder.PRE, norms=("norm",), attention=out_of("mix"),
        ffn=out_of("act"), width="act", exit=into("norm"), entry=out_of("words"),
    )  # fmt: skip
    with pytest.raises(ValueError, match="must pass tensors from block to block, got dict"):
        probe(Mine(), torch.randn(2, 5, 8), family=family)


def test_refuses_blocks_that_do_not_run():
    model = ZOO["torch_encoder_post"].build()
    lazy = Lazy(model)
    with pytest.raises(ValueError, match="must run its 2 blocks when it is called, but 2 of 3"):
        probe(lazy, torch.randn(2, 5, 16))


def test_refuses_labels_that_do_not_fit():
    with pytest.raises(ValueError, match=r"`labels` must fit the model's output, got labels \[5\]"):
        probe(classifier(), tokens(), labels=torch.zeros(5, dtype=torch.long))


def test_refuses_a_loss_that_is_no_number():
    with pytest.raises(ValueError, match=r"`loss` must give one number as a tensor, got \[4, 3\]"):
        probe(classifier(), tokens(), loss=lambda logits: logits)


def test_a_loss_of_nothing_that_learns_is_said():
    found = probe(classifier(), tokens(), loss=lambda logits: torch.zeros(()))
    assert found.missing["gradient"] == "the loss does not depend on anything that learns"


class MineBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.mix, self.act = nn.LayerNorm(8), nn.Linear(8, 8), nn.Linear(8, 8)
        self.words = Words()

    def forward(self, u):
        self.words(u)
        return u + self.act(self.norm(u) + self.mix(u))


class Words(nn.Module):
    def forward(self, u):
        return {"words": u}


class Mine(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(MineBlock(), MineBlock())

    def forward(self, u):
        return self.blocks(u)


class Talker(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, u):
        self.inner(u)
        return "done"


class Moody(Talker):
    calls = 0

    def forward(self, u):
        self.calls += 1
        return self.inner(u) + self.calls


class Lazy(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, u):
        return self.inner.layers[0](u)


@pytest.mark.parametrize("kind", [Classifier, LanguageModel])
def test_everything_is_computed_where_the_model_is(kind):
    config = replace(CONFIG, positions=("after_embedding",), causal=kind is LanguageModel)
    model = kind(config, generator=torch.Generator().manual_seed(0)).eval()
    ids = tokens()
    wanted = probe(model, ids, causality=False)
    with torch.device("meta"):  # whatever is made without a place lies elsewhere, and fails
        found = probe(model, ids, causality=False)
    assert list(found) == list(wanted)


def test_kl_between_layers_stands_beside_js():
    found = probe(classifier(), tokens(), groups=("attention",), baseline=False)
    assert found["attention.step_kl"].labels == found["attention.step_js"].labels
    assert found["attention.step_kl"].labels == ("block 2", "block 3")
    assert all(value > 0 for _, value in found["attention.step_kl"].singles())
    same = classifier()
    for block in same.encoder.blocks:
        torch.nn.init.zeros_(block.attention.query.weight)  # every head looks at all alike
    found = probe(same, tokens(), groups=("attention",), baseline=False)
    assert found["attention.step_kl"].finite() == pytest.approx([0.0, 0.0], abs=1e-6)


def test_exponents_are_measured_where_they_are_asked_for():
    model, ids = classifier().double(), tokens()
    mask = torch.arange(12) < torch.tensor([[12], [0], [7], [12]])
    model.train()
    assert not any(name.startswith("lyapunov") for name in probe(model, ids, baseline=False))
    found = probe(model, (ids, mask), groups=("lyapunov",), baseline=False)
    assert list(found) == ["lyapunov.largest", "lyapunov.jacobian_norm"]
    growth, norms = found["lyapunov.largest"].finite(), found["lyapunov.jacobian_norm"].finite()
    assert len(growth) == len(norms) == 3
    assert all(math.exp(each) <= 1.01 * norm for each, norm in zip(growth, norms, strict=True))
    field = model.eval().encoder.blocks[0]
    alone = probe(model, ids[3:], groups=("lyapunov",), baseline=False)
    u = model.encoder._place_sites(model.encoder.embedding(ids[3:]), None, None)
    jacobian = torch.autograd.functional.jacobian(lambda v: field(v), u).reshape(192, 192)
    largest = float(torch.linalg.matrix_norm(jacobian, ord=2))
    # Eight rounds of power iteration: a lower bound, close by.
    assert alone["lyapunov.jacobian_norm"]["block 1"] <= largest * (1 + 1e-9)
    assert alone["lyapunov.jacobian_norm"]["block 1"] == pytest.approx(largest, rel=0.05)
    assert not any(weight.grad is not None for weight in model.parameters())


def test_exponents_that_cannot_be_had_are_missing_with_a_reason(monkeypatch):
    def why(model, batch):
        return probe(model, batch, groups=("lyapunov",), baseline=False).missing["lyapunov"]

    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    foreign = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
    assert "another library" in why(foreign, torch.zeros(2, 3, 8))
    assert "32 bits" in why(classifier().bfloat16(), tokens())
    broken = classifier()
    torch.nn.init.constant_(broken.encoder.blocks[1].reaction.out.weight, math.inf)
    assert why(broken, tokens()) == "the field is not finite"
    monkeypatch.setattr("depthpde.doctor.measurements.TANGENT_BUDGET", 100)
    assert "12 sites are too many" in why(classifier(), tokens())


def test_refuses_a_group_that_is_none():
    with pytest.raises(ValueError, match=r"`groups` must be one of drift, rank, .* 'lyapunov'"):
        probe(classifier(), tokens(), groups=("lyapunow",))
