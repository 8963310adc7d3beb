"""Blocks whose composition is known by construction."""

import pytest
import torch
from torch import nn

from depthpde.insertion.family import NormOrder
from depthpde.insertion.layout import FieldLayout
from depthpde.insertion.recorder import Given
from depthpde.insertion.residual import BlockCall, block_causality, decompose

DIM = 8


class Mix(nn.Module):
    """Mean of the past, or of all."""

    def __init__(self, *, causal):
        super().__init__()
        self.out, self.causal = nn.Linear(DIM, DIM), causal

    def forward(self, u):
        n = u.shape[1]
        weights = torch.ones(n, n).tril() if self.causal else torch.ones(n, n)
        return self.out((weights / weights.sum(dim=1, keepdim=True)) @ u)


class Block(nn.Module):
    def __init__(self, form, *, causal=True):
        super().__init__()
        self.form = form
        self.a, self.b, self.post = nn.LayerNorm(DIM), nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.mix, self.point = Mix(causal=causal), nn.Linear(DIM, DIM)
        self.drop = nn.Dropout(0.1)

    def forward(self, u, past_key_values=None):
        if past_key_values is not None:
            past_key_values.append(u)
        match self.form:
            case "pre":
                u = u + self.drop(self.mix(self.a(u)))
                return u + 0.5 * self.point(self.b(u))
            case "post":
                u = self.a(u + self.mix(u))
                return self.b(u + self.point(u))
            case "parallel":
                return u + self.mix(self.a(u)) + self.point(self.a(u))
            case "sandwich":
                u = u + self.post(self.mix(self.a(u)))
                return u + self.point(self.b(u))
            case "scaled":
                u = 1.5 * u + self.mix(self.a(u))
                return u + self.point(self.b(u))
            case "shared":
                u = u + self.drop(self.mix(self.a(u)))
                return u + self.drop(self.point(self.b(u)))
            case "other":
                return torch.tanh(self.mix(u)) * u


def call_of(form, **options):
    torch.manual_seed(0)
    block = Block(form, **options).eval()
    u = torch.randn(2, 6, DIM)
    given = Given((u,), {}, ["u", "past_key_values"])
    with torch.no_grad():
        return BlockCall(block, given, 0, u, block(u), FieldLayout.BLC)


def parts(form, **options):
    with torch.no_grad():
        return decompose(call_of(form, **options))


@pytest.mark.parametrize(
    ("form", "terms", "norms"),
    [
        ("pre", [("drop", True), ("point", False)], ["a", "b"]),
        ("post", [("mix", True), ("point", False)], ["a", "b"]),
        ("sandwich", [("post", True), ("point", False)], ["a", "b"]),
        ("scaled", [("mix", True), ("point", False)], []),
        ("shared", [("mix", True), ("point", False)], ["a", "b"]),
    ],
)
def test_terms_are_what_is_added_and_norms_what_reads_the_stream(form, terms, norms):
    found = parts(form)
    assert [(term.path, term.mixes) for term in found.terms] == terms
    assert found.norms == norms
    assert found.norm is (NormOrder.POST if form == "post" else NormOrder.PRE)
    assert not found.parallel


def test_two_terms_side_by_side_have_no_stream_between_them():
    found = parts("parallel")
    assert {(term.path, term.mixes) for term in found.terms} == {("mix", True), ("point", False)}
    assert found.parallel


def test_a_block_that_adds_nothing_has_no_terms():
    assert parts("other").terms == []


@pytest.mark.parametrize("causal", [True, False])
def test_whether_a_site_sees_its_future_is_read_off_the_block(causal):
    with torch.no_grad():
        assert block_causality(call_of("pre", causal=causal)) is causal


def test_a_map_site_by_site_tells_nothing_of_causality():
    call = call_of("pre")
    alone = BlockCall(
        call.module.point, call.given, 0, call.u, call.module.point(call.u), call.layout
    )
    with torch.no_grad():
        assert block_causality(alone) is None


def test_a_second_call_adds_nothing_to_a_cache():
    call, kept = call_of("pre"), []
    given = Given((call.u,), {"past_key_values": kept}, call.given.names)
    with torch.no_grad():
        decompose(BlockCall(call.module, given, 0, call.u, call.out, call.layout))
    assert kept == []
