import torch
from torch import nn
from torch.nn import functional as F

from depthpde.isolation.modes import NoDropout, in_float64, wide_weights


class Casts(nn.Module):
    """Goes to float32 inside, in every way that people write it."""

    def forward(self, u):
        a = u.float() / 3
        b = u.to(torch.float32) / 3
        c = F.softmax(u, dim=-1, dtype=torch.float32)
        return a + b + c.type_as(u) + torch.tensor(0.1) / 3


def test_casts_inside_a_model_stay_wide():
    u = torch.randn(2, 5, dtype=torch.float64)
    with in_float64():
        found = Casts()(u)
    exact = 2 * u / 3 + u.softmax(dim=-1) + torch.tensor(0.1, dtype=torch.float64) / 3
    assert found.dtype == torch.float64
    assert (found - exact).abs().max() < 1e-15
    assert (Casts()(u) - exact).abs().max() > 1e-10
    assert torch.get_default_dtype() == torch.float32


def test_the_default_format_comes_back_after_an_error():
    try:
        with in_float64():
            raise KeyError
    except KeyError:
        pass
    assert torch.get_default_dtype() == torch.float32


def test_weights_are_wide_and_buffers_fresh_each_time():
    model = nn.BatchNorm1d(3)
    give = wide_weights(model)
    first = give()
    first["running_mean"].add_(1)
    assert all(each.dtype == torch.float64 for name, each in first.items() if "num" not in name)
    assert torch.equal(give()["running_mean"], torch.zeros(3, dtype=torch.float64))


def test_without_dropout_train_mode_is_eval_mode():
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.5, batch_first=True)
    u = torch.randn(2, 5, 8)
    with NoDropout():
        trained = layer.train()(u)
        mixed = F.scaled_dot_product_attention(u, u, u, None, 0.5)
    plain = F.scaled_dot_product_attention(u, u, u)
    assert torch.allclose(trained, layer.eval()(u), atol=1e-6)
    assert torch.allclose(mixed, plain, atol=1e-6)
    assert not torch.allclose(layer.train()(u), trained, atol=1e-2)
