from __future__ import annotations

import torch
from torch.autograd import gradcheck, gradgradcheck

from depthpde.operators.diffusion.conductance import composite, edge_distance
from operators.diffusion import cases


def test_kernel_equals_the_composite_in_value_and_gradient():
    for shape in ((1, 1, 2), (3, 2, 1), (2, 17, 70), (5, 64, 8)):
        u, w = cases.field(*shape), torch.rand(shape[2], dtype=torch.float64)
        got = cases.value_and_gradients(edge_distance, u, w)
        cases.assert_same(got, cases.value_and_gradients(composite, u, w), 1e-12)


def test_first_and_second_derivatives():
    u, w = cases.field(2, 5, 3).requires_grad_(), torch.rand(3).double().requires_grad_()
    assert gradcheck(edge_distance, (u, w))
    assert gradgradcheck(edge_distance, (u, w))


def test_passes_opcheck_vmap_and_forward_mode():
    u, w = cases.field(2, 5, 3), torch.rand(3).double()
    result = torch.library.opcheck(torch.ops.depthpde.edge_distance.default, (u, w))
    assert set(result.values()) == {"SUCCESS"}
    many = torch.stack((u, 2 * u))
    mapped = torch.func.vmap(edge_distance, in_dims=(0, None))(many, w)
    torch.testing.assert_close(mapped, torch.stack([edge_distance(each, w) for each in many]))
    tangent = torch.func.jvp(lambda w: edge_distance(u, w), (w,), (torch.ones_like(w),))[1]
    torch.testing.assert_close(tangent, edge_distance(u, torch.ones_like(w)))
