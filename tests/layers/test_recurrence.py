"""A recurrence is torch's bidirectional LSTM over packed sequences, and padding is never read."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from depthpde.layers.recurrence import Recurrence

LENGTHS = torch.tensor([9, 4, 1])
MASK = torch.arange(9) < LENGTHS[:, None]


@pytest.fixture
def recurrence():
    torch.manual_seed(0)
    return Recurrence(6, dtype=torch.float64)


@pytest.fixture
def u():
    return torch.randn(3, 9, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def by_packing(recurrence, u):
    both = nn.LSTM(6, 6, batch_first=True, bidirectional=True, dtype=torch.float64)
    for name, weight in recurrence.forth.named_parameters():
        getattr(both, name).data.copy_(weight)
        getattr(both, f"{name}_reverse").data.copy_(recurrence.back.get_parameter(name))
    packed = pack_padded_sequence(u, LENGTHS, batch_first=True)
    return recurrence.out(pad_packed_sequence(both(packed)[0], batch_first=True)[0])


def test_equals_torchs_packed_sequences(recurrence, u):
    got, wanted = recurrence(u, valid_mask=MASK), by_packing(recurrence, u)
    torch.testing.assert_close(got[MASK], wanted[MASK], rtol=0, atol=1e-12)
    whole = recurrence(u[:1])
    torch.testing.assert_close(whole, wanted[:1], rtol=0, atol=1e-12)


def test_neither_content_nor_amount_of_padding_reaches_a_real_token(recurrence, u):
    other = u.masked_fill(~MASK[..., None], 1e6)
    longer = torch.cat((u, u), dim=1)
    outs = [
        recurrence(u, valid_mask=MASK),
        recurrence(other, valid_mask=MASK),
        recurrence(longer, valid_mask=nn.functional.pad(MASK, (0, 9)))[:, :9],
    ]
    for out in outs[1:]:
        torch.testing.assert_close(out[MASK], outs[0][MASK], rtol=0, atol=1e-13)


def test_every_site_hears_of_every_other(recurrence, u):
    u.requires_grad_()
    for site in (0, 4, 8):
        (reached,) = torch.autograd.grad(recurrence(u)[:, site].sum(), u)
        assert (reached.abs().sum(dim=-1) > 0).all()


def test_refuses_padding_in_front_and_a_field_of_other_features(recurrence, u):
    with pytest.raises(ValueError, match=r"`valid_mask` must have its real tokens first.*end"):
        recurrence(u, valid_mask=MASK.flip(1))
    with pytest.raises(ValueError, match=r"`u` must have 6 features.*got 5"):
        recurrence(u[..., :5])
    with pytest.raises(ValueError, match="`dim` must be"):
        Recurrence(0)
