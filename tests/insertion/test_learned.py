"""What was learned can be read, drawn and switched off."""

import pytest
import torch
from torch import nn

import depthpde as dp


@pytest.fixture
def pair():
    torch.manual_seed(0)
    block = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
    model = nn.TransformerEncoder(block, 2, enable_nested_tensor=False).eval()
    u = torch.randn(2, 5, 16)
    plain = model(u)
    inserted = dp.insert(model, "after_ffn", initial_ratio=0.1)
    return model, inserted, u, plain


def test_ratios_are_named_by_layer_and_have_every_feature(pair):
    _, inserted, _, _ = pair
    assert list(inserted.ratios) == list(inserted.layers)
    for values in inserted.ratios.values():
        torch.testing.assert_close(values, torch.full((16,), 0.1))


def test_disabled_layers_give_the_original_outputs_to_the_bit(pair):
    model, inserted, u, plain = pair
    acting = model(u)
    with inserted.disabled():
        assert torch.equal(model(u), plain)
        assert inserted.status().count("disabled") == 2
    assert torch.equal(model(u), acting)
    assert not torch.allclose(acting, plain)


def test_layers_act_again_after_an_error(pair):
    model, inserted, u, plain = pair
    with pytest.raises(RuntimeError), inserted.disabled():
        raise RuntimeError
    assert not torch.allclose(model(u), plain)


def test_the_status_names_a_layer_that_is_still_the_identity():
    layer = torch.nn.TransformerEncoderLayer(16, 2, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, num_layers=1, enable_nested_tensor=False)
    inserted = dp.insert(model, "after_embedding")
    assert inserted.status().endswith("enabled, the identity")
    with inserted.disabled():
        assert inserted.status().endswith("disabled")


def test_the_status_says_what_is_learned_trained_and_enabled(pair):
    _, inserted, _, _ = pair
    assert inserted.status().count("enabled") == 2
    assert "identity" not in inserted.status()
    assert "r 0.1000 [0.1000, 0.1000]" in inserted.status()
    assert "trained" in inserted.status()
    for each in inserted.parameters():
        each.requires_grad_(False)
    assert inserted.status().count("frozen") == 2
    inserted.remove()
    assert inserted.status().count("removed") == 2


def test_the_picture_has_a_row_a_layer_and_is_the_callers(pair):
    figure = pytest.importorskip("matplotlib.figure").Figure()
    _, inserted, _, _ = pair
    ax = figure.subplots()
    assert inserted.plot(ax) is ax
    assert [each.get_text() for each in ax.get_yticklabels()] == list(inserted.layers)
    assert inserted.plot().get_xlabel() == "ratio r"


def test_without_ratios_or_matplotlib_there_is_no_picture(pair, monkeypatch):
    model, inserted, _, _ = pair
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    with pytest.raises(ValueError, match=r"depthpde\[plot\]"):
        inserted.plot()
    other = dp.insert(model, "after_attention", layer="depthwise_conv")
    assert other.ratios == {}
    assert "no ratio" in other.status()
    with pytest.raises(ValueError, match="none"):
        other.plot()


def test_a_notebook_shows_what_is_printed(pair):
    _, inserted, _, _ = pair
    assert "after_ffn" in inserted._repr_html_()
