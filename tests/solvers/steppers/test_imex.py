from dataclasses import replace

import pytest
import torch

from depthpde.solvers.integrate import integrate
from depthpde.solvers.steppers.imex import ADDITIVE
from depthpde.solvers.tableau import order_by_conditions, stability_function
from depthpde.solvers.term import Term, diffusion_term
from depthpde.solvers.tolerance import Tolerance
from solvers.steppers.problems import draw, heat_exact

EVERY = pytest.mark.parametrize("pair", list(ADDITIVE.values()), ids=list(ADDITIVE))


@EVERY
def test_both_halves_meet_the_conditions_of_their_order(pair):
    for half in (pair.explicit, pair.implicit):
        assert order_by_conditions(half) == pair.order
        low = replace(half, b=tuple(b - e for b, e in zip(half.b, half.error, strict=True)))
        assert order_by_conditions(low) == half.error_order


@EVERY
def test_the_halves_meet_the_conditions_that_couple_them(pair):
    # With b and c shared, what is left are conditions with one A of each half.
    b, c = (torch.tensor(each, dtype=torch.float64) for each in (pair.explicit.b, pair.explicit.c))
    A = [torch.tensor(h.a, dtype=torch.float64) for h in (pair.explicit, pair.implicit)]
    for one in A:
        assert float(b @ one @ c) == pytest.approx(1 / 6, abs=1e-12)
        if pair.order == 4:
            assert float((b * c) @ one @ c) == pytest.approx(1 / 8, abs=1e-12)
            assert float(b @ one @ c**2) == pytest.approx(1 / 12, abs=1e-12)
            for other in A:
                assert float(b @ one @ other @ c) == pytest.approx(1 / 24, abs=1e-12)


@EVERY
def test_the_implicit_half_damps_without_bound(pair):
    assert all(abs(stability_function(pair.implicit, -(10.0**k))) <= 1 for k in range(-2, 9))
    assert abs(stability_function(pair.implicit, -1e8)) < 1e-6


@EVERY
def test_the_explicit_half_is_stable_as_far_as_it_declares(pair):
    end = pair.explicit.real_axis
    inside = [abs(stability_function(pair.explicit, -end * i / 200)) for i in range(201)]
    assert max(inside) <= 1 + 1e-9
    assert abs(stability_function(pair.explicit, -1.01 * end)) > 1


@EVERY
def test_stiff_heat_with_a_mask_is_followed_within_tolerance(pair):
    u0 = draw(2, 16, 2)
    mask = torch.arange(16) < torch.tensor([[16], [9]])
    terms = (
        diffusion_term(200.0, valid_mask=mask),
        Term(name="decay", rhs=lambda u, t: -u * mask[..., None]),
    )
    path = integrate(terms, u0, (0.0, 0.5), method=pair.name, tolerance=Tolerance(rtol=1e-5))
    wanted = heat_exact(u0[1:, :9], 200.0, 0.5) * 2.718281828459045**-0.5
    error = (path.final[1:, :9] - wanted).norm() / wanted.norm()
    assert float(error) < 1e-4
    torch.testing.assert_close(path.final[1, 9:], u0[1, 9:])
