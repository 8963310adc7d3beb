"""A layer behind any module: recurrent networks here, convolutional ones in test_timm."""

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import depthpde as dp

WORDS, LENGTH = 20, 7
IDS = torch.randint(0, WORDS, (3, LENGTH), generator=torch.Generator().manual_seed(0))
SHORT = torch.tensor([7, 3, 5])


class Recurrent(nn.Module):
    def __init__(self, kind, *, batch_first=True, both=False):
        super().__init__()
        torch.manual_seed(0)
        self.table = nn.Embedding(WORDS, 8)
        self.rnn = getattr(nn, kind)(8, 16, batch_first=batch_first, bidirectional=both)
        self.head = nn.Linear(32 if both else 16, 5)
        self.eval()

    def forward(self, ids, lengths=None):
        u = self.table(ids)
        first = self.rnn.batch_first
        u = u if first else u.transpose(0, 1)
        if lengths is not None:
            u = pack_padded_sequence(u, lengths, batch_first=first, enforce_sorted=False)
        out = self.rnn(u)[0]
        out = out if lengths is None else pad_packed_sequence(out, batch_first=first)[0]
        return self.head(out if first else out.transpose(0, 1))


def calls(model):
    with torch.no_grad():
        return model(IDS), model(IDS, SHORT)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("both", [True, False])
def test_recurrent_networks_in_both_layouts_and_packed(kind, first, both, tmp_path):
    model = Recurrent(kind, batch_first=first, both=both)
    layout = "blc" if first else "lbc"
    plain, packed = calls(model)
    inserted = dp.insert(model, at="rnn", layout=layout)
    assert all(torch.equal(a, b) for a, b in zip(calls(model), (plain, packed), strict=True))
    inserted.remove()
    inserted = dp.insert(model, at="rnn", layout=layout, initial_ratio=0.2)
    (layer,) = inserted.layers.values()
    assert layer.is_causal is not both
    assert dp.check_causality(model, IDS).leaks is both
    moved, moved_packed = calls(model)
    assert (moved - plain).abs().max() > 1e-3
    inserted.save(tmp_path / "rnn.safetensors")
    inserted.remove()
    assert torch.equal(calls(model)[1], packed)
    dp.insert(model, at="rnn", layout=layout, initial_ratio=0.2).load(tmp_path / "rnn.safetensors")
    assert torch.equal(calls(model)[1], moved_packed)


def test_the_end_of_a_packed_sequence_is_a_wall():
    model = Recurrent("LSTM", both=True)
    dp.insert(model, at="rnn", initial_ratio=0.2)
    valid = torch.arange(LENGTH) < SHORT[:, None]
    other = torch.where(valid, IDS, (IDS + 1) % WORDS)
    with torch.no_grad():
        assert torch.equal(model(other, SHORT)[valid], model(IDS, SHORT)[valid])


class Convolutional(nn.Module):
    def __init__(self, layout):
        super().__init__()
        torch.manual_seed(0)
        self.layout = layout
        self.first = nn.Conv2d(3, 6, 3, padding=1)
        self.stage = nn.Identity()

    def forward(self, image):
        u = self.first(image)
        return self.stage(u if self.layout == "bchw" else u.permute(0, 2, 3, 1))


@pytest.mark.parametrize("kind", ["diffusion", "multiscale", "learned_stencil", "adaptive"])
@pytest.mark.parametrize("layout", ["bchw", "bhwc"])
def test_a_layer_over_an_image_takes_every_size_of_image(layout, kind):
    model = Convolutional(layout)
    batch = {"image": torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(1))}
    wide = torch.randn(2, 3, 6, 10, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        plain = model(wide)
        inserted = dp.insert(model, at="stage", layout=layout, layer=kind, batch=batch)
        assert torch.equal(model(wide), plain)
        (layer,) = inserted.layers.values()
        for weight in layer.parameters():
            weight.fill_(0.1)
        moved = model(wide)
        inserted.remove()
        made = dp.insert(model, at="stage", layout=layout, layer=kind, batch={"image": wide})
        (own,) = made.layers.values()  # built for this size
        own.load_state_dict(layer.state_dict())
        assert (moved - plain).abs().max() > 1e-3
        assert torch.equal(model(wide), moved)


def test_a_state_space_model_decodes_with_its_cache():
    import transformers

    config = transformers.MambaConfig(
        vocab_size=50, hidden_size=16, num_hidden_layers=2, state_size=4, time_step_rank=4
    )
    torch.manual_seed(0)
    model = transformers.MambaForCausalLM(config).eval()
    inserted = dp.insert(model, at="backbone.layers.1.mixer", initial_ratio=0.2)
    (layer,) = inserted.layers.values()
    assert layer.is_causal
    asked = ("future", "padding", "cache")
    report = dp.audit(model, IDS + 3, causal=True, questions=asked)
    assert not report.leaks, report
    prompt = IDS[:1] + 3
    steps = model.generate(prompt, max_new_tokens=3, do_sample=False, pad_token_id=0)
    whole = model.generate(
        prompt, max_new_tokens=3, do_sample=False, pad_token_id=0, use_cache=False
    )
    assert torch.equal(steps, whole)


def test_a_layer_that_meets_a_filled_state_refuses_it():
    import transformers

    config = transformers.MambaConfig(
        vocab_size=50, hidden_size=16, num_hidden_layers=2, state_size=4, time_step_rank=4
    )
    model = transformers.MambaForCausalLM(config).eval()
    with torch.no_grad():
        kept = model(IDS + 3).cache_params
        dp.insert(model, at="backbone.layers.1.mixer", initial_ratio=0.2)
        with pytest.raises(ValueError, match=r"holds some tokens .* empty"):
            model(IDS[:, :1] + 3, cache_params=kept)


def test_two_modules_beside_a_position_of_the_blocks():
    model = nn.TransformerEncoderLayer(16, 4, batch_first=True).eval()
    u = torch.randn(2, 6, 16)
    plain = model(u)
    inserted = [
        dp.insert(model, "after_ffn", initial_ratio=0.1),
        dp.insert(model, at="norm2", causal=False, initial_ratio=0.1),
        dp.insert(model, at="linear1", causal=False, initial_ratio=0.1),
    ]
    assert [each.matches[0].dim for each in inserted] == [16, 16, 2048]
    assert (model(u) - plain).abs().max() > 1e-3
    for each in inserted:
        each.remove()
    assert torch.equal(model(u), plain)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"at": "rnm"}, "must name a module of the model, got 'rnm'; the nearest are rnn"),
        ({"at": "rnn", "layout": "bchw"}, "must have the 3 axes .* got 'bchw'"),
        ({"at": "rnn", "layout": "bld"}, "must be one of .* 'bld'"),
        ({"at": "rnn", "position": "after_ffn"}, "one of the two"),
        ({}, "one of the two"),
        ({"at": "rnn", "batch": {"words": IDS}}, r"needs a run .* pass batch="),
    ],
)
def test_what_cannot_be_meant_is_explained(options, message):
    with pytest.raises(ValueError, match=message):
        dp.insert(Recurrent("GRU"), **options)


def test_behind_a_map_site_by_site_the_whole_model_tells_whether_it_is_causal():
    for both in (True, False):
        inserted = dp.insert(Recurrent("GRU", both=both), at="head")
        assert [layer.is_causal for layer in inserted.layers.values()] == [not both]


def test_a_module_that_does_not_run_is_named():
    model = Recurrent("GRU")
    model.spare = nn.Linear(2, 2)
    with pytest.raises(ValueError, match="the module did not run"):
        dp.insert(model, at="spare")
