"""What torch may do with a path: every derivative, compile, export, vmap, autocast."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from depthpde import Diffusion, Method, Scheme, diffuse, diffuse_2d
from depthpde.operators.boundary import Boundary
from depthpde.operators.diffusion.operator import build
from depthpde.operators.diffusion.problem import Problem
from operators.diffusion import cases

SCHEMES = list(Scheme)


def inputs(length=7):
    u = cases.field(2, length, 3).requires_grad_()
    r = cases.ratio("feature", u.detach(), length - 1, 0.5).requires_grad_()
    return u, r


@pytest.mark.parametrize("scheme", SCHEMES)
def test_first_and_second_derivatives(scheme):
    u, r = inputs(5)
    valid = cases.mask(u)

    def run(u, r):
        return diffuse(u, r, scheme=scheme, steps=2, valid_mask=valid)

    assert gradcheck(run, (u, r))
    assert gradgradcheck(run, (u, r))


def test_second_derivatives_of_the_adaptive_form():
    u = cases.field(2, 5, 3).requires_grad_()
    r = cases.ratio("batch_edge", u.detach(), 4, 0.5).requires_grad_()
    assert gradcheck(lambda u, r: diffuse(u, r, steps=3), (u, r))
    assert gradgradcheck(lambda u, r: diffuse(u, r, steps=3), (u, r))


@pytest.mark.parametrize(
    ("scheme", "boundary"),
    [*((scheme, Boundary.NO_FLUX) for scheme in SCHEMES), (Scheme.EXPLICIT, Boundary.FIXED),
     (Scheme.EXPLICIT, Boundary.PERIODIC)],
)  # fmt: skip
def test_derivatives_of_a_gradient_by_the_field(scheme, boundary):
    u, r = inputs(5)
    valid = cases.mask(u) if boundary is Boundary.NO_FLUX else None

    def pulled(g, r):
        out = diffuse(u, r, scheme=scheme, steps=2, boundary=boundary, valid_mask=valid)
        return torch.autograd.grad(out, u, g, create_graph=True)[0]

    g = cases.field(2, 5, 3).cos().requires_grad_()
    assert gradcheck(pulled, (g, r))
    assert gradgradcheck(pulled, (g, r))


def test_a_jacobian_meets_a_vector_without_the_composite():
    def refuse(*given):
        raise AssertionError("the composite was run")

    double = build(
        "doubling",
        lambda u, r, edges, problem: 2 * u,
        lambda g, u, r, edges, problem: (2 * g, torch.zeros_like(r)),
        refuse,
    )
    u, r = inputs(5)
    probe = torch.zeros_like(u, requires_grad=True)
    out = double(u, r[None, None], None, Problem())
    (back,) = torch.autograd.grad(out, u, probe, create_graph=True)
    v = torch.randn_like(u)
    (forth,) = torch.autograd.grad(back, probe, v)
    assert torch.equal(forth, 2 * v)


@pytest.mark.parametrize(
    ("scheme", "compiled"), [*((scheme, False) for scheme in SCHEMES), (Scheme.EXPLICIT, True)]
)
def test_forward_mode_agrees_with_finite_differences(scheme, compiled):
    u, r = (each.detach() for each in inputs())
    du, dr = torch.ones_like(u).cumsum(1).sin(), 0.3 * torch.ones_like(r)

    def run(u, r):
        return diffuse(u, r, scheme=scheme, steps=3)

    def tangent(u, r, du, dr):
        return torch.func.jvp(run, (u, r), (du, dr))[1]

    if compiled:
        tangent = torch.compile(tangent, fullgraph=True)
    h = 1e-6
    slope = (run(u + h * du, r + h * dr) - run(u - h * du, r - h * dr)) / (2 * h)
    got = tangent(u, r, du, dr)
    assert got.abs().max() > 0.1
    torch.testing.assert_close(got, slope, rtol=0, atol=1e-8)


def test_jacobians_of_both_modes_agree():
    u, r = (each.detach() for each in inputs())
    for argument in (0, 1):
        forward = torch.func.jacfwd(lambda u, r: diffuse(u, r, steps=3), argnums=argument)(u, r)
        reverse = torch.func.jacrev(lambda u, r: diffuse(u, r, steps=3), argnums=argument)(u, r)
        torch.testing.assert_close(forward, reverse, rtol=0, atol=1e-13)


def test_a_tensor_that_outlived_a_transform_is_taken_as_what_it_is():
    kept = []
    u, layer = torch.randn(2, 6, 4), Diffusion(4)

    def loss(x):
        kept.append(x)  # a wrapper of torch.func, dead once grad has returned
        return x.sum()

    torch.func.grad(loss)(u)
    wanted, got = layer(u), layer(kept[0])
    assert torch.equal(got, wanted)
    (theirs,) = torch.autograd.grad(wanted.square().sum(), [layer.free.theta])
    (ours,) = torch.autograd.grad(got.square().sum(), [layer.free.theta])
    assert torch.equal(ours, theirs)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_vmap_equals_a_loop_in_value_and_gradient(scheme):
    u, r = cases.field(6, 7, 3).reshape(3, 2, 7, 3), torch.rand(3, 3, dtype=torch.float64) / 2
    u, r = u.requires_grad_(), r.requires_grad_()
    valid = cases.mask(u[0])

    def run(u, r):
        return diffuse(u, r, scheme=scheme, steps=2, valid_mask=valid).sin()

    for r_axis in (0, None):
        ratio = r if r_axis == 0 else r[0]
        mapped = torch.func.vmap(run, in_dims=(0, r_axis))(u, ratio)
        looped = torch.stack([run(u[i], ratio[i] if r_axis == 0 else ratio) for i in range(3)])
        torch.testing.assert_close(mapped, looped, rtol=0, atol=1e-13)
        for got, wanted in zip(
            torch.autograd.grad(mapped.sum(), (u, r)),
            torch.autograd.grad(looped.sum(), (u, r)),
            strict=True,
        ):
            torch.testing.assert_close(got, wanted, rtol=0, atol=1e-12)


def test_gradients_of_single_examples_by_vmap_of_grad():
    u, r = cases.field(6, 7, 3).reshape(3, 2, 7, 3), torch.rand(3, dtype=torch.float64) / 2

    def loss(u, r):
        return diffuse(u, r, steps=4).sin().sum()

    single = torch.func.grad(loss, argnums=1)
    mapped = torch.func.vmap(single, in_dims=(0, None))(u, r)
    torch.testing.assert_close(mapped, torch.stack([single(each, r) for each in u]))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_compiles_as_one_graph(scheme):
    u, r = inputs()
    valid = cases.mask(u)

    def run(u, r):
        return diffuse(u, r, scheme=scheme, steps=4, valid_mask=valid)

    compiled = torch.compile(run, fullgraph=True)
    got = cases.value_and_gradients(compiled, u, r)
    cases.assert_same(got, cases.value_and_gradients(run, u, r), 1e-13)


@pytest.mark.parametrize(
    ("op", "settings"),
    [
        ("diffuse", (3, "explicit", "no_flux", 1, 0)),
        ("diffuse", (3, "upwind", "no_flux", 1, 0)),
        ("diffuse_implicit", (2, "backward_euler", "no_flux", 1, 0)),
        ("diffuse_spectral", (2, "exact", "no_flux", 1, 0)),
        ("diffuse_2d", (2, "explicit", "no_flux", 1, 4)),
    ],
)
def test_operators_pass_opcheck(op, settings):
    diffuse(torch.zeros(1, 2, 1), 0.1)
    for scheme in ("backward_euler", "exact"):
        diffuse(torch.zeros(1, 2, 1), 0.1, scheme=scheme)
    diffuse_2d(torch.zeros(1, 4, 1), 0.1, (2, 2))
    u = cases.field(2, 8, 3).requires_grad_()
    r = (torch.rand(1, 1, 3, dtype=torch.float64) / 4).requires_grad_()
    result = torch.library.opcheck(getattr(torch.ops.depthpde, op).default, (u, r, None, *settings))
    assert set(result.values()) == {"SUCCESS"}


class Module(torch.nn.Module):
    def forward(self, u, r, valid):
        return diffuse(u, r, steps=2, valid_mask=valid)


def test_exports_plain_torch_operations_for_any_batch_and_length():
    u, r = cases.field(2, 9, 3, torch.float32), torch.full((3,), 0.2)
    shape = {0: torch.export.Dim("batch"), 1: torch.export.Dim("length", min=3)}
    program = torch.export.export(
        Module(), (u, r, cases.mask(u)), dynamic_shapes=(shape, None, shape)
    )
    targets = {str(node.target) for node in program.graph.nodes if node.op == "call_function"}
    assert not any("depthpde" in target for target in targets)
    other = cases.field(5, 17, 3, torch.float32)
    valid = cases.mask(other)
    torch.testing.assert_close(program.module()(other, r, valid), Module()(other, r, valid))


def test_onnx_runtime_agrees(tmp_path):
    import onnxruntime

    u, r = cases.field(2, 9, 3, torch.float32), torch.full((3,), 0.2)
    shape = {0: torch.export.Dim("batch"), 1: torch.export.Dim("length", min=3)}
    program = torch.export.export(
        Module().eval(), (u, r, cases.mask(u)), dynamic_shapes=(shape, None, shape)
    )
    program = torch.onnx.export(program, dynamo=True, verbose=False)
    program.save(tmp_path / "diffuse.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "diffuse.onnx"))
    other = cases.field(3, 14, 3, torch.float32)
    valid = cases.mask(other)
    feeds = dict(
        zip(
            (i.name for i in session.get_inputs()),
            (other.numpy(), r.numpy(), valid.numpy()),
            strict=True,
        )
    )
    (got,) = session.run(None, feeds)
    torch.testing.assert_close(torch.from_numpy(got), Module()(other, r, valid))


def test_autocast_keeps_half_precision_and_gives_the_ratio_a_full_gradient():
    u = cases.field(2, 9, 3, torch.float32)
    r = torch.full((3,), 0.2, requires_grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = diffuse(u.bfloat16(), r, steps=2)
    out.float().square().sum().backward()
    assert out.dtype is torch.bfloat16
    assert r.grad.dtype is torch.float32
    assert (r.grad < 0).all()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_backward_keeps_the_input_alone_whatever_the_number_of_steps(scheme):
    def kept(steps):
        sizes = []
        u, r = inputs(64)

        def pack(saved):
            sizes.append(saved.numel() * saved.element_size())
            return saved

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda saved: saved):
            diffuse(u, r, scheme=scheme, steps=steps)
        return sum(sizes), u.numel() * 8 + r.numel() * 8

    one, wanted = kept(1)
    assert one == wanted
    assert kept(8)[0] == one


def test_saved_bytes_of_the_plain_stencil_do_grow():
    sizes = {}
    for steps in (1, 8):
        total = []
        u, r = inputs(64)

        def pack(saved, total=total):
            total.append(saved.numel())
            return saved

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda saved: saved):
            diffuse(u, r, steps=steps, method=Method.STENCIL)
        sizes[steps] = sum(total)
    assert sizes[8] > 4 * sizes[1]


def test_kernels_may_be_called_from_many_threads_at_once():
    from concurrent.futures import ThreadPoolExecutor

    u = cases.field(8, 300, 16)
    wanted = diffuse(u, 0.2, steps=5)
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: diffuse(u, 0.2, steps=5), range(40)))
    assert all(torch.equal(result, wanted) for result in results)


@pytest.mark.parametrize(
    ("scheme", "grid"),
    [*((each, None) for each in SCHEMES), ("explicit", (3, 4)), ("exact", (3, 4))],
)
def test_every_layer_exports_as_plain_torch_operations(scheme, grid):
    layer, u = Diffusion(3, scheme=scheme, grid=grid), cases.field(2, 12, 3, torch.float32)
    program = torch.export.export(layer, (u,))
    targets = {str(node.target) for node in program.graph.nodes if node.op == "call_function"}
    assert not any("depthpde" in target for target in targets)
    torch.testing.assert_close(program.module()(u), layer(u))
