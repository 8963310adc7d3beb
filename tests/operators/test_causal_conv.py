"""Short causal convolutions against torch's own, packed, continued and one site at a time."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from depthpde import causal_conv1d, causal_conv1d_update

DTYPE = torch.float64


def inputs(width=4, batch=2, dim=5, length=23, dtype=DTYPE):
    generator = torch.Generator().manual_seed(width)
    shapes = ((batch, dim, length), (dim, width), (dim,))
    return [torch.randn(each, generator=generator, dtype=DTYPE).to(dtype) for each in shapes]


def plain(x, weight, bias=None, activation=None):
    padded = F.pad(x, (weight.shape[1] - 1, 0))
    out = F.conv1d(padded, weight[:, None], bias, groups=x.shape[1])
    return out if activation is None else F.silu(out)


@pytest.mark.parametrize("activation", [None, "silu", "swish"])
@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_equals_torch_in_value_and_every_gradient(width, activation):
    leaves = [each.requires_grad_() for each in inputs(width)]
    results = []
    for run in (causal_conv1d, plain):
        out = run(*leaves, activation=activation)
        results.append([out, *torch.autograd.grad(out.sin().sum(), leaves)])
    for got, wanted in zip(*results, strict=True):
        torch.testing.assert_close(got, wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("activation", [None, "silu"])
@pytest.mark.parametrize(
    ("width", "dim", "length"), [(1, 16, 5), (2, 5, 1), (3, 19, 200), (4, 48, 301), (6, 33, 9)]
)
@pytest.mark.parametrize("biased", [False, True])
def test_one_pass_equals_float64_in_value_and_every_gradient(
    activation, width, dim, length, biased
):
    """Chunks, rows that fill no register, pieces shorter than the filter."""
    leaves = inputs(width, dim=dim, length=length, dtype=torch.float32)[: 3 if biased else 2]
    sites = torch.arange(length)
    numbers = torch.stack((sites // 7 + (sites > 70), (sites > 2).long() + (sites > 130)))
    g = torch.randn(2, dim, length, generator=torch.Generator().manual_seed(0))
    for seq_idx in (None, numbers):
        results = []
        for dtype in (torch.float32, torch.float64):
            own = [each.to(dtype).detach().requires_grad_() for each in leaves]
            out = causal_conv1d(*own, seq_idx=seq_idx, activation=activation)
            results.append([out, *torch.autograd.grad(out, own, g.to(dtype))])
        for got, wanted in zip(*results, strict=True):
            scale = wanted.abs().max().item()
            torch.testing.assert_close(got.double(), wanted, rtol=0, atol=2e-6 * scale)


def test_silu_of_large_and_missing_numbers():
    x = torch.tensor([-1e4, -200.0, -88.0, 0.0, 88.0, 1e4, float("inf"), float("nan")])
    for dim in (8, 32):  # one by one, and several at once
        out = causal_conv1d(
            x.repeat(dim // 8)[None, :, None], torch.ones(dim, 1), activation="silu"
        )
        wanted = torch.nn.functional.silu(x.double()).float()
        torch.testing.assert_close(out.flatten()[:8], wanted, rtol=1e-6, atol=1e-30, equal_nan=True)


def test_packed_sequences_change_no_bit_of_each_other():
    x, weight, bias = inputs(batch=1, dim=32, length=90, dtype=torch.float32)
    numbers = (torch.arange(90) // 30)[None]
    other = x.clone()
    other[:, :, 30:60] = float("nan")
    runs = [causal_conv1d(each, weight, bias, numbers, activation="silu") for each in (x, other)]
    assert torch.equal(runs[0][:, :, :30], runs[1][:, :, :30])
    assert torch.equal(runs[0][:, :, 60:], runs[1][:, :, 60:])


def test_second_derivatives_are_those_of_the_composite():
    leaves = [each.requires_grad_() for each in inputs(dtype=torch.float32)]
    double = [each.detach().double().requires_grad_() for each in leaves]
    found = []
    for own in (leaves, double):
        first = torch.autograd.grad(
            causal_conv1d(*own, activation="silu").sin().sum(), own, create_graph=True
        )
        found.append(torch.autograd.grad(sum(each.square().sum() for each in first), own))
    for got, wanted in zip(*found, strict=True):
        torch.testing.assert_close(got.double(), wanted, rtol=1e-4, atol=1e-4)


def test_packed_sequences_do_not_mix_however_they_are_named():
    x, weight, bias = inputs(batch=1)
    apart = torch.cat([plain(part, weight, bias) for part in x.split([1, 2, 13, 7], dim=2)], dim=2)
    numbers = torch.tensor([[0] + [1] * 2 + [2] * 13 + [3] * 7])
    starts = torch.tensor([0, 1, 3, 16, 23], dtype=torch.int32)
    for named in ({"seq_idx": numbers}, {"cu_seqlens": starts}):
        torch.testing.assert_close(causal_conv1d(x, weight, bias, **named), apart)


def test_goes_on_from_a_state_in_parts_and_by_single_sites():
    x, weight, bias = inputs()
    whole = plain(x, weight, bias, "silu")
    first, state = causal_conv1d(
        x[:, :, :2], weight, bias, return_final_states=True, activation="silu"
    )
    assert state.shape == (2, 5, 3)
    second, state = causal_conv1d(
        x[:, :, 2:9], weight, bias, initial_states=state, return_final_states=True,
        activation="silu",
    )  # fmt: skip
    rest = [
        causal_conv1d_update(x[:, :, t], state, weight, bias, "silu") for t in range(9, x.shape[2])
    ]
    got = torch.cat((first, second, torch.stack(rest, dim=2)), dim=2)
    torch.testing.assert_close(got, whole, rtol=0, atol=1e-13)
    assert torch.equal(state, x[:, :, -3:])


def test_bfloat16_is_near_float64():
    x, weight, bias = inputs(dtype=torch.bfloat16)
    out = causal_conv1d(x, weight, bias, activation="silu")
    wanted = plain(x.double(), weight.double(), bias.double(), "silu")
    assert out.dtype is torch.bfloat16
    assert (out.double() - wanted).abs().max() <= 2 * torch.finfo(
        out.dtype
    ).eps * wanted.abs().max()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": torch.zeros(2, 4, 6)}, r"same dim, got \[2, 4, 6\] and \[5, 4\]; transpose"),
        ({"activation": "relu"}, "`activation` must be one of silu, swish, got 'relu'"),
        ({"seq_idx": torch.zeros(1, 23)}, r"`seq_idx` must have shape .* \[2, 23\], got \[1, 23\]"),
        ({"initial_states": torch.zeros(2, 5, 4)}, r"= \[2, 5, 3\], got \[2, 5, 4\]"),
        ({"cu_seqlens": torch.tensor([0, 23])}, "in a batch of one, got a batch of 2; use seq_idx"),
        (
            {"seq_idx": torch.zeros(2, 23), "initial_states": torch.zeros(2, 5, 3)},
            "`initial_states` must be left out with packed sequences, got both",
        ),
    ],
)
def test_refuses_what_does_not_fit(change, message):
    x, weight, _ = inputs()
    with pytest.raises(ValueError, match=message):
        causal_conv1d(**({"x": x, "weight": weight} | change))


def test_the_update_refuses_a_state_that_is_too_short():
    x, weight, _ = inputs()
    with pytest.raises(ValueError, match=r"= \[2, 5, 3\] or more sites, got \[2, 5, 2\]; pad"):
        causal_conv1d_update(x[:, :, 0], torch.zeros(2, 5, 2), weight)


def test_a_hybrid_model_takes_it_by_one_line(monkeypatch):
    from transformers import Lfm2Config, Lfm2ForCausalLM
    from transformers.models.lfm2 import modeling_lfm2

    torch.manual_seed(0)
    config = Lfm2Config(
        vocab_size=16, hidden_size=8, intermediate_size=8, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=2, layer_types=["conv", "full_attention"],
    )  # fmt: skip
    model, tokens = Lfm2ForCausalLM(config), torch.randint(0, 16, (2, 9))

    def gradients() -> list[torch.Tensor]:
        loss = model(input_ids=tokens, labels=tokens, use_cache=False).loss
        return [loss.detach(), *torch.autograd.grad(loss, list(model.parameters()))]

    wanted = gradients()
    layouts = []

    def ours(x: torch.Tensor, *rest: torch.Tensor) -> torch.Tensor:
        layouts.append(x.mT.is_contiguous())
        return causal_conv1d(x, *rest)

    monkeypatch.setattr(modeling_lfm2, "causal_conv1d_fn", ours)
    for got, want in zip(gradients(), wanted, strict=True):
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-6)
    assert layouts == [True]  # called once, in the layout that needs no copy
