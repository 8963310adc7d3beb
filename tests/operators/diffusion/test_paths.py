"""Every path against the dense reference, in value and in every gradient."""

from __future__ import annotations

import pytest
import torch

from depthpde import Boundary, Method, Scheme, diffuse
from depthpde.operators.boundary import count_edges
from operators.diffusion import cases

EXPLICIT = (Scheme.EXPLICIT, Scheme.UPWIND)
IMPLICIT = (Scheme.BACKWARD_EULER, Scheme.CRANK_NICOLSON)
PATHS = [
    *((Method.STENCIL, scheme) for scheme in EXPLICIT),
    *((Method.FUSED, scheme) for scheme in EXPLICIT),
    *((Method.TRITON, scheme) for scheme in EXPLICIT),
    *((Method.IMPLICIT, scheme) for scheme in IMPLICIT),
    (Method.SPECTRAL, Scheme.EXACT),
]
BOUND = {Scheme.EXPLICIT: 0.5, Scheme.UPWIND: 1.0}


def check_against_reference(u, r, tolerance, *, method, **settings):
    got = cases.value_and_gradients(lambda u, r: diffuse(u, r, method=method, **settings), u, r)
    wanted = cases.value_and_gradients(
        lambda u, r: diffuse(u, r, method=Method.REFERENCE, **settings), u.double(), r.double()
    )
    cases.assert_same(got, [each.to(u.dtype) for each in wanted], tolerance)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(
    ("method", "scheme", "form"),
    [
        (method, scheme, form)
        for method, scheme in PATHS
        for form in (cases.FORMS if method is not Method.SPECTRAL else ("scalar", "feature"))
    ],
)
def test_equals_the_reference_for_every_ratio_and_mask(method, scheme, masked, form):
    u = cases.field(3, 11, 5)
    r = cases.ratio(form, u, 10, BOUND.get(scheme, 3.0))
    mask = cases.mask(u) if masked else None
    for steps in (1, 2, 5):
        check_against_reference(
            u, r, 1e-12, method=method, scheme=scheme, valid_mask=mask, steps=steps
        )


LENGTHS, FEW = (1, 2, 3, 4, 8, 13, 16, 17, 64, 101, 257), (3, 17, 257)
"""All, and those at which Triton's interpreter, which is slow, is tried with every change."""


@pytest.mark.parametrize(
    ("method", "scheme", "length"),
    [
        pytest.param(
            *path, n, marks=[pytest.mark.drill] if path[0] is Method.TRITON and n not in FEW else []
        )
        for path in PATHS
        for n in LENGTHS
    ],
)
def test_equals_the_reference_at_every_length(method, scheme, length):
    u = cases.field(2, length, 3)
    r = cases.ratio("feature", u, length - 1, BOUND.get(scheme, 3.0))
    for steps in (1, 4, 9) if length < 100 else (4,):
        check_against_reference(u, r, 1e-12, method=method, scheme=scheme, steps=steps)
        if length > 1:
            check_against_reference(
                u, r, 1e-12, method=method, scheme=scheme, steps=steps, valid_mask=cases.mask(u)
            )


@pytest.mark.parametrize("dilation", [2, 3, 7, 20])
@pytest.mark.parametrize(("method", "scheme"), PATHS)
def test_equals_the_reference_at_every_dilation(method, scheme, dilation):
    u = cases.field(2, 13, 4)
    r = cases.ratio("feature", u, 0, BOUND.get(scheme, 3.0))
    for mask in (None, cases.mask(u)):
        check_against_reference(
            u, r, 1e-12, method=method, scheme=scheme, dilation=dilation, valid_mask=mask, steps=3
        )


@pytest.mark.parametrize(
    ("method", "scheme", "boundary"),
    [
        (Method.FUSED, Scheme.EXPLICIT, Boundary.PERIODIC),
        *(
            (method, scheme, boundary)
            for boundary in (Boundary.FIXED, Boundary.PERIODIC)
            for method, scheme in (
                (Method.STENCIL, Scheme.EXPLICIT),
                (Method.SPECTRAL, Scheme.EXACT),
                (Method.AUTO, Scheme.EXPLICIT),
                (Method.AUTO, Scheme.BACKWARD_EULER),
                (Method.AUTO, Scheme.EXACT),
            )
        ),
    ],
)
def test_equals_the_reference_at_every_end(method, scheme, boundary):
    for length, dilation in ((1, 1), (2, 1), (5, 2), (12, 1), (12, 5)):
        u = cases.field(2, length, 3)
        forms = ("feature",) if scheme is Scheme.EXACT else ("feature", "edge_feature")
        for form in forms:
            r = cases.ratio(form, u, count_edges(length, boundary, dilation), 0.5)
            settings = {"scheme": scheme, "boundary": boundary, "dilation": dilation, "steps": 3}
            check_against_reference(u, r, 1e-12, method=method, **settings)


@pytest.mark.parametrize(("method", "scheme"), PATHS)
def test_float32_stays_within_a_hundred_thousandth(method, scheme):
    u = cases.field(2, 67, 17, torch.float32)
    r = cases.ratio("feature", u, 66, BOUND.get(scheme, 2.0))
    for steps in (1, 4):
        check_against_reference(
            u, r, 1e-5, method=method, scheme=scheme, steps=steps, valid_mask=cases.mask(u)
        )


@pytest.fixture
def _two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("_two_threads")
@pytest.mark.parametrize("shape", [(1, 3000, 1), (2, 1000, 200), (40, 7, 65), (1, 513, 64)])
def test_fused_tiles_join_without_a_seam_on_two_threads(shape):
    u = cases.field(*shape)
    r = cases.ratio("feature", u, shape[1] - 1, 0.5)
    for scheme in EXPLICIT:
        for steps in (1, 4, 11):
            settings = {"scheme": scheme, "steps": steps, "valid_mask": cases.mask(u)}
            got, wanted = (
                cases.value_and_gradients(
                    lambda u, r, m=method, s=settings: diffuse(u, r, method=m, **s), u, r
                )
                for method in (Method.FUSED, Method.STENCIL)
            )
            cases.assert_same(got, wanted, 1e-12)


@pytest.mark.parametrize(("method", "scheme"), PATHS)
def test_takes_fields_that_are_not_contiguous(method, scheme):
    u = cases.field(4, 3, 9).permute(1, 2, 0)
    r = cases.ratio("feature", u, 8, 0.5)[::1]
    assert not u.is_contiguous()
    check_against_reference(u, r, 1e-12, method=method, scheme=scheme, steps=2)


@pytest.mark.parametrize("method", [Method.STENCIL, Method.FUSED])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_summed_in_float32(method, dtype):
    u = cases.field(2, 33, 8, dtype)
    r = torch.full((8,), 0.2)
    out = diffuse(u, r, steps=8, method=method)
    wanted = diffuse(u.double(), r.double(), steps=8, method=Method.REFERENCE)
    assert out.dtype is dtype
    assert (out.double() - wanted).abs().max() <= wanted.abs().max() * torch.finfo(dtype).eps


def test_packed_segments_do_not_mix():
    u = cases.field(1, 12, 3)
    segments = torch.tensor([[0] * 5 + [1] * 4 + [2] * 3])
    whole = diffuse(u, 0.3, steps=20, segments=segments)
    apart = torch.cat([diffuse(part, 0.3, steps=20) for part in u.split([5, 4, 3], dim=1)], dim=1)
    torch.testing.assert_close(whole, apart, rtol=0, atol=1e-14)


def test_image_rows_do_not_mix():
    u = cases.field(2, 12, 3)
    whole = diffuse(u, 0.3, steps=7, row_length=4)
    rows = diffuse(u.reshape(6, 4, 3), 0.3, steps=7).reshape(u.shape)
    torch.testing.assert_close(whole, rows, rtol=0, atol=1e-14)


@pytest.mark.parametrize("beyond", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize(
    ("method", "scheme"), [*PATHS, *((Method.REFERENCE, scheme) for scheme in Scheme)]
)
def test_padding_keeps_its_values_and_tells_nothing(method, scheme, beyond):
    u, r = cases.field(3, 12, 4), torch.full((4,), 0.25, dtype=torch.float64)
    valid = cases.mask(u)

    def run(u, r):
        return diffuse(u, r, steps=6, scheme=scheme, valid_mask=valid, method=method)

    out = run(u.masked_fill(~valid[..., None], beyond), r)
    torch.testing.assert_close(out[valid], run(u, r)[valid], rtol=0, atol=1e-13)
    torch.testing.assert_close(out[~valid], torch.full_like(out[~valid], beyond), equal_nan=True)


@pytest.mark.parametrize("beyond", [float("nan"), float("inf")])
@pytest.mark.parametrize("scheme", list(Scheme))
def test_padding_tells_nothing_to_gradients_in_any_mode(scheme, beyond):
    u, r = cases.field(3, 12, 4), torch.full((4,), 0.25, dtype=torch.float64)
    valid = cases.mask(u)
    weights = torch.where(valid[..., None], u.sin(), 0.0)
    filled = u.masked_fill(~valid[..., None], beyond)

    def loss(u, r):
        out = diffuse(u, r, steps=2, scheme=scheme, valid_mask=valid)
        return (torch.where(valid[..., None], out, 0.0) * weights).sum()

    clean = torch.func.grad(loss, argnums=(0, 1))(u, r)
    for got, wanted in zip(torch.func.grad(loss, argnums=(0, 1))(filled, r), clean, strict=True):
        torch.testing.assert_close(got, wanted, rtol=0, atol=1e-13)
    leaves = filled.clone().requires_grad_(), r.clone().requires_grad_()
    for got, wanted in zip(torch.autograd.grad(loss(*leaves), leaves), clean, strict=True):
        torch.testing.assert_close(got, wanted, rtol=0, atol=1e-13)
    slope = torch.func.jvp(lambda r: loss(filled, r), (r,), (torch.ones_like(r),))[1]
    torch.testing.assert_close(slope, clean[1].sum(), rtol=0, atol=1e-12)


def test_auto_names_the_path_it_takes():
    from depthpde.operators.diffusion.dispatch import choose
    from depthpde.operators.diffusion.problem import Problem

    u = torch.zeros(1, 2, 3)
    chosen = {scheme: choose(u, Problem(scheme=scheme)) for scheme in Scheme}
    assert chosen == {
        Scheme.EXPLICIT: Method.FUSED,
        Scheme.UPWIND: Method.FUSED,
        Scheme.BACKWARD_EULER: Method.IMPLICIT,
        Scheme.CRANK_NICOLSON: Method.IMPLICIT,
        Scheme.EXACT: Method.SPECTRAL,
    }
    assert choose(u, Problem(boundary=Boundary.FIXED)) is Method.STENCIL
    on_meta = torch.zeros(1, 2, 3, device="meta")
    assert choose(on_meta, Problem()) is Method.STENCIL
    assert choose(on_meta, Problem(scheme=Scheme.BACKWARD_EULER)) is Method.REFERENCE


@pytest.mark.parametrize(
    ("method", "settings", "message"),
    [
        (Method.STENCIL, {"scheme": "exact"}, "'stencil' does the explicit and the upwind"),
        (Method.FUSED, {"scheme": "exact"}, "'fused' does the explicit and the upwind scheme"),
        (Method.FUSED, {"boundary": "fixed"}, "got scheme 'explicit' with 'fixed' ends"),
        (Method.IMPLICIT, {}, "'implicit' does backward Euler and Crank–Nicolson"),
        (Method.SPECTRAL, {}, "'spectral' does the exact scheme"),
        (Method.TRITON, {"boundary": "periodic"}, "'triton' does the explicit and the upwind"),
    ],
)
def test_a_path_refuses_what_it_cannot_do(method, settings, message):
    with pytest.raises(ValueError, match=message):
        diffuse(torch.zeros(1, 4, 2), 0.1, method=method, **settings)


def test_the_triton_path_names_the_device_that_came(monkeypatch):
    monkeypatch.delenv("TRITON_INTERPRET")
    with pytest.raises(ValueError, match=r"on CUDA; got scheme 'explicit' .* ends on cpu; use"):
        diffuse(torch.zeros(1, 4, 2), 0.1, method=Method.TRITON)


def test_the_spectral_path_refuses_a_ratio_for_each_edge():
    with pytest.raises(ValueError, match="same at every edge for the spectral path"):
        diffuse(torch.zeros(1, 4, 2), torch.full((1, 3, 1), 0.1), scheme="exact")
