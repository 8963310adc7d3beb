import math

import mpmath
import pytest
import torch

from depthpde.solvers.linear.phi import phi_functions, poisson_tails


def exact(k: int, z: float) -> float:
    """Take the defining recurrence in digits enough to survive its cancellation."""
    with mpmath.workdps(60 + 12 * 310 if z else 60):
        if z == 0:
            return 1 / math.factorial(k)
        value = mpmath.exp(mpmath.mpf(z))
        for j in range(1, k + 1):
            value = (value - mpmath.mpf(1) / mpmath.factorial(j - 1)) / z
        return float(value)


RATES = [0.0, -1e-300, -1e-12, -1e-6, -1e-3, -0.1, -1.0, -3.999, -4.001, -10.0, -745.0, -1e6]


@pytest.mark.parametrize("k", range(10))
def test_every_value_is_right_to_a_few_roundings(k):
    z = torch.tensor(RATES, dtype=torch.float64)
    wanted = torch.tensor([exact(k, each) for each in RATES], dtype=torch.float64)
    torch.testing.assert_close(phi_functions(z, 9)[k], wanted, rtol=3e-14, atol=1e-300)
    torch.testing.assert_close(phi_functions(z, k)[k], wanted, rtol=3e-14, atol=1e-300)


def test_the_textbook_recurrence_would_fail_where_this_does_not():
    z = torch.tensor([-1e-6], dtype=torch.float64)
    value = torch.exp(z)
    for k in range(1, 4):
        value = (value - 1 / math.factorial(k - 1)) / z
    assert abs(float(value) - exact(3, -1e-6)) > 0.1
    assert abs(float(phi_functions(z, 3)[3]) - exact(3, -1e-6)) < 1e-15


def test_values_are_differentiable_everywhere():
    z = torch.tensor([-1e3, -5.0, -4.0, -1.0, -1e-9, 0.0], dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(phi_functions(z, 4).sum(), z)
    assert slope.isfinite().all()
    inside = torch.tensor([-20.0, -3.0, -0.5], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda each: phi_functions(each, 5), inside)


@pytest.mark.parametrize("tau", [1e-8, 0.3, 2.0, 40.0])
def test_upwind_weights_are_those_of_the_matrix_function(tau):
    n = 12
    shift = torch.diag(torch.ones(n - 1, dtype=torch.float64), -1)
    z = tau * (shift - torch.eye(n, dtype=torch.float64))
    weights = poisson_tails(torch.tensor([tau], dtype=torch.float64), n, 4)[:, 0]
    # The first block row of the exponential of an augmented matrix holds every φ_k.
    size = 5
    augmented = torch.zeros(size * n, size * n, dtype=torch.float64)
    augmented[:n, :n] = z
    for k in range(size - 1):
        augmented[k * n : (k + 1) * n, (k + 1) * n : (k + 2) * n] = torch.eye(n)
    dense = torch.linalg.matrix_exp(augmented)[:n].reshape(n, size, n)
    for k in range(size):
        torch.testing.assert_close(weights[k], dense[:, k, 0], rtol=1e-10, atol=1e-14)


def test_upwind_weights_sum_to_what_a_constant_needs():
    weights = poisson_tails(torch.tensor([0.0, 1.5], dtype=torch.float64), 60, 5)
    for k in range(6):
        total = torch.full((2,), 1 / math.factorial(k), dtype=torch.float64)
        torch.testing.assert_close(weights[k].sum(-1), total, rtol=1e-12, atol=0)
