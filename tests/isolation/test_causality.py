import pytest
import torch
from torch import nn

from depthpde.insertion.insert import insert
from depthpde.isolation.causality import check_causality
from depthpde.layers.diffusion import Diffusion
from insertion.zoo import DIM, ZOO, embedded, spread, tokens


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


def test_a_layer_that_turns_symmetric_after_its_insertion_is_named():
    model = ZOO["gpt2"].build()
    inserted = insert(model, "after_ffn", layer=lambda dim, causal: Turning(dim), blocks=[1])
    inserted.model.depthpde_insertion.after_ffn_branch_1.symmetric = Diffusion(DIM)
    leak = check_causality(model, {"input_ids": tokens()}).leak
    assert leak.module == f"depthpde_insertion.{next(iter(inserted.layers))}.symmetric"


class Turning(nn.Module):
    is_causal = True

    def __init__(self, dim):
        super().__init__()
        self.symmetric = Diffusion(dim, causal=True)

    def forward(self, u, valid_mask=None):
        return self.symmetric(u, valid_mask)


class Sleeping(nn.Module):
    """Symmetric, but still the identity."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(29, DIM)
        self.smoothing = Diffusion(DIM, initial_ratio=0.0)

    def forward(self, ids):
        return self.smoothing(self.embedding(ids))


def test_a_layer_at_the_identity_is_tried_away_from_it_and_left_at_it():
    model = Sleeping()
    theta = next(model.smoothing.parameters())
    before, version = theta.detach().clone(), theta._version
    report = check_causality(model, tokens())
    assert report.leak.module == "smoothing"
    assert report.moved == 1
    assert "1 layers moved away from the identity" in str(report)
    assert torch.equal(theta, before)
    assert theta._version == version


def test_no_axis_is_guessed_where_length_width_heads_batch_and_vocabulary_are_equal():
    import transformers

    size = 8
    settings = {"n_embd": size, "n_head": size, "n_layer": 2, "vocab_size": size,
                "n_positions": 32, "bos_token_id": 1, "eos_token_id": None}  # fmt: skip
    model = spread(transformers.GPT2LMHeadModel(transformers.GPT2Config(**settings)))
    ids = torch.randint(0, size, (size, size), generator=torch.Generator().manual_seed(3))
    for layer in ("diffusion", "adaptive", "multiscale"):
        inserted = insert(model, "after_ffn", layer=layer)
        assert not check_causality(model, ids).leaks
        mask = torch.ones_like(ids)
        assert not check_causality(model, {"input_ids": ids, "attention_mask": mask}).leaks
        inserted.remove()
    model.transformer.h[1].attn.is_causal = False
    model.transformer.h[1].attn.forward = Open(model.transformer.h[1].attn)
    assert check_causality(model, ids).leak.module.startswith("transformer.h.1.attn")


class Open:
    """Attention that averages over all sites."""

    def __init__(self, attention):
        self.attention = attention

    def __call__(self, u, *args, **kwargs):
        mixed = u.mean(dim=1, keepdim=True).repeat(1, u.shape[1], 1)
        return self.attention.c_proj(mixed), None


class Fixed(nn.Module):
    """A mixer that takes one length only, as wide as it is long."""

    def __init__(self, *, causal):
        super().__init__()
        self.mix = nn.Parameter(torch.ones(DIM, DIM).tril() if causal else torch.ones(DIM, DIM))
        self.pooled = nn.Linear(DIM, DIM)

    def forward(self, u):
        self.pooled(u.sum(dim=1))  # [batch, DIM]: its only axis of that size counts no sites
        return self.mix @ u


@pytest.mark.parametrize("causal", [True, False])
def test_a_model_of_one_length_is_judged_along_every_axis_that_may_be_meant(causal):
    u = torch.randn(2, DIM, DIM, generator=torch.Generator().manual_seed(4))
    assert check_causality(Fixed(causal=causal), u).leaks is not causal


def test_fewer_trials_begin_in_the_middle():
    assert check_causality(Smooth(causal=True), tokens(), trials=1).cuts == (3,)
    assert check_causality(Smooth(causal=True), tokens(), trials=9).cuts == (1, 3, 5, 6)
    with pytest.raises(ValueError, match=r"`trials` must be .* got 0"):
        check_causality(Smooth(causal=True), tokens(), trials=0)


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
    printed = check_causality(Smooth(causal=False), tokens()).to_dict()
    assert printed["leaks"] is True
    assert printed["leak"]["module"] == "smoothing"
    assert printed["length"] == 7


def test_refuses_a_model_without_an_axis_of_sites():
    class Pooled(nn.Module):
        def forward(self, u):
            return u.mean(dim=1)

    with pytest.raises(ValueError, match=r"some.*of 7 sites"):
        check_causality(Pooled(), embedded())


def test_refuses_a_model_that_differs_from_call_to_call():
    class Noisy(nn.Module):
        def forward(self, u):
            return u + torch.rand_like(u)

    with pytest.raises(ValueError, match="same output twice in eval mode"):
        check_causality(Noisy(), embedded())


def test_refuses_inputs_that_cannot_be_changed():
    model = Smooth(causal=True)
    with pytest.raises(ValueError, match=r"must.*a mapping"):
        check_causality(model, "tokens")
    with pytest.raises(ValueError, match="at least 2 sites on axis 1"):
        check_causality(model, tokens()[:, :1])
    with pytest.raises(ValueError, match="got none with an axis 1"):
        check_causality(model, (torch.tensor(1),))
    with pytest.raises(ValueError, match="`vocabulary` must be at least 2"):
        check_causality(model, tokens(), vocabulary=1)


@pytest.mark.filterwarnings("ignore")  # its successor is another library
def test_a_leak_of_a_model_that_runs_in_no_float64_is_reported():
    torch.manual_seed(0)
    plain = nn.TransformerEncoderLayer(16, 2, 16, batch_first=True)
    model = torch.ao.quantization.quantize_dynamic(plain, {nn.Linear})
    leak = check_causality(model, torch.randn(2, 6, 16), trials=1).leak
    assert (leak.module, leak.reached) == ("(model)", 0)
    assert leak.size > 1e-3
