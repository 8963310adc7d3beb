import pytest
import torch
from torch import nn

from depthpde.insertion.causality import check_causality
from depthpde.insertion.insert import insert
from depthpde.layers.diffusion import Diffusion
from insertion.zoo import DIM, ZOO, embedded, tokens


class Smooth(nn.Module):
    """A causal language model with one symmetric layer in the middle."""

    def __init__(self, *, causal: bool) -> None:
        super().__init__()
        self.embedding = nn.Embedding(29, DIM)
        self.before = nn.Linear(DIM, DIM)
        self.smoothing = Diffusion(DIM, causal=causal)
        self.head = nn.Sequential(nn.Linear(DIM, DIM), nn.ReLU(), nn.Linear(DIM, 29))

    def forward(self, ids):
        return self.head(self.smoothing(self.before(self.embedding(ids))))


def test_names_the_module_through_which_the_future_leaks():
    report = check_causality(Smooth(causal=False), tokens())
    assert report.leaks
    assert (report.leak.module, report.leak.kind) == ("smoothing", "Diffusion")
    assert report.leak.reached == report.leak.changed_from - 1
    assert "the future leaks through smoothing (Diffusion)" in str(report)


def test_upwind_layer_is_clean():
    report = check_causality(Smooth(causal=True), tokens())
    assert not report.leaks
    assert report.leak is None
    assert str(report).startswith("causal: no site sees its future")


@pytest.mark.parametrize("name", ["gpt2", "llama", "x_decoder_pre"])
def test_causal_models_are_clean_before_and_after_insertion_at_every_position(name):
    model = ZOO[name].build()
    assert not check_causality(model, tokens()).leaks
    for position in ("after_embedding", "before_norm", "in_attention", "in_heads", "after_ffn"):
        insert(model, position, initial_ratio=0.4)
    insert(model, "after_attention", route="stream", initial_ratio=0.4)
    insert(model, "between_blocks", initial_ratio=0.4)
    assert not check_causality(model, tokens()).leaks


@pytest.mark.parametrize(
    ("name", "attention"),
    [
        ("bert", "encoder.layer.0.attention.self"),
        ("x_encoder_pre", "attn_layers.layers.0.1.attend"),
    ],
)
def test_encoders_leak_through_their_first_attention(name, attention):
    report = check_causality(ZOO[name].build(), tokens())
    assert report.leaks
    assert report.leak.module.startswith(attention)


def test_a_symmetric_layer_hidden_behind_a_causal_claim_is_named():
    model = ZOO["gpt2"].build()
    inserted = insert(model, "after_ffn", layer=lambda dim, causal: Lying(dim), blocks=[1])
    leak = check_causality(model, {"input_ids": tokens()}).leak
    assert leak.module == f"depthpde_insertion.{next(iter(inserted.layers))}.symmetric"


class Lying(nn.Module):
    is_causal = True

    def __init__(self, dim):
        super().__init__()
        self.symmetric = Diffusion(dim)

    def forward(self, u, valid_mask=None):
        return self.symmetric(u, valid_mask)


def test_fields_and_other_arguments_are_taken_as_a_tuple():
    layer = nn.TransformerEncoderLayer(DIM, 4, batch_first=True)
    mask = nn.Transformer.generate_square_subsequent_mask(7)
    assert not check_causality(layer, (embedded(), mask)).leaks
    assert check_causality(layer, (embedded(),)).leaks


def test_length_first_fields_are_checked_along_their_own_axis():
    gru = nn.GRU(DIM, DIM)
    assert not check_causality(gru, embedded(), length_axis=0).leaks
    both = nn.GRU(DIM, DIM, bidirectional=True)
    assert check_causality(both, embedded().transpose(0, 1), length_axis=0).leaks


def test_the_model_is_left_as_it_was():
    model = ZOO["gpt2"].build().train()
    model.transformer.h[0].eval()
    check_causality(model, tokens())
    assert model.training
    assert not model.transformer.h[0].training
    assert not any(module._forward_hooks for module in model.modules())


def test_a_leak_that_never_reaches_the_output_is_no_leak():
    class Unused(Smooth):
        def forward(self, ids):
            self.smoothing(self.embedding(ids))
            return self.head(self.embedding(ids))

    assert not check_causality(Unused(causal=False), tokens()).leaks


@pytest.mark.parametrize("causal", [False, True])
def test_what_is_no_number_is_never_called_causal(causal):
    model = Smooth(causal=causal)
    with torch.no_grad():
        model.head[0].weight[:] = torch.nan
    if causal:
        with pytest.raises(ValueError, match=r"got NaN at every feature .* from head.0 \(Linear\)"):
            check_causality(model, tokens())
    else:
        assert check_causality(model, tokens()).leak.module == "smoothing"


def test_report_is_plain_data():
    told = check_causality(Smooth(causal=False), tokens()).to_dict()
    assert told["leaks"] is True
    assert told["leak"]["module"] == "smoothing"
    assert told["length"] == 7


def test_refuses_a_model_without_an_axis_of_sites():
    class Pooled(nn.Module):
        def forward(self, u):
            return u.mean(dim=1)

    with pytest.raises(ValueError, match="some output with an axis of 7 sites"):
        check_causality(Pooled(), embedded())


def test_refuses_a_model_that_differs_from_call_to_call():
    class Noisy(nn.Module):
        def forward(self, u):
            return u + torch.rand_like(u)

    with pytest.raises(ValueError, match="same output twice in eval mode"):
        check_causality(Noisy(), embedded())


def test_refuses_inputs_that_cannot_be_changed():
    model = Smooth(causal=True)
    with pytest.raises(ValueError, match="must be a tensor, a tuple or a mapping"):
        check_causality(model, "tokens")
    with pytest.raises(ValueError, match="at least 2 sites on axis 1"):
        check_causality(model, tokens()[:, :1])
    with pytest.raises(ValueError, match="got none with an axis 1"):
        check_causality(model, (torch.tensor(1),))
    with pytest.raises(ValueError, match="`vocabulary` must be at least 2"):
        check_causality(model, tokens(), vocabulary=1)
