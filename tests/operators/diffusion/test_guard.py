"""A ratio that cannot be right is refused, in compiled programs too."""

from __future__ import annotations

import math

import pytest
import torch

from depthpde import diffuse, diffuse_2d
from depthpde.operators.diffusion.guard import checked
from depthpde.operators.stability import Scheme


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("scheme", list(Scheme))
def test_refuses_what_is_not_finite_for_every_scheme(scheme, value):
    with pytest.raises(ValueError, match=r"`ratio` must be finite, got (NaN|-?inf); check"):
        diffuse(torch.zeros(1, 4, 2), value, scheme=scheme)


@pytest.mark.parametrize("value", [".2", True, None, [0.2]])
def test_refuses_what_is_no_number(value):
    with pytest.raises(ValueError, match=r"`ratio` must be a number or a tensor, got .*float"):
        diffuse(torch.zeros(1, 4, 2), value)


def test_refuses_a_tensor_of_whole_numbers_or_truths():
    for wrong in (torch.ones(2, dtype=torch.long), torch.ones(2, dtype=torch.bool)):
        with pytest.raises(ValueError, match=r"floating-point numbers, got torch\.(int64|bool)"):
            diffuse(torch.zeros(1, 4, 2), wrong)


@pytest.mark.parametrize("run", [diffuse, lambda u, r, **k: diffuse_2d(u, r, (2, 2), **k)])
def test_a_compiled_program_checks_the_ratio_each_time_it_runs(run):
    compiled = torch.compile(lambda u, r: run(u, r, steps=3), backend="aot_eager", fullgraph=True)
    u, good = torch.randn(1, 4, 2), torch.full((2,), 0.2)
    assert torch.equal(compiled(u, good), run(u, good, steps=3))
    with pytest.raises(ValueError, match=r"`ratio` must lie in \[0, 0\.(5|25)\] .* got 5"):
        compiled(u, good * 25)


def test_hands_the_ratio_on_with_its_gradient_when_compiled():
    r = torch.full((2,), 0.2, requires_grad=True)
    compiled = torch.compile(lambda r: checked(r, Scheme.EXPLICIT) ** 2, backend="aot_eager")
    compiled(r).sum().backward()
    torch.testing.assert_close(r.grad, 2 * r.detach())
