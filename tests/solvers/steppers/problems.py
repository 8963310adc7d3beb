"""Equations whose solutions are known, for every method alike."""

import math

import torch

from depthpde.operators.boundary import Boundary
from depthpde.operators.laplacian import eigenvalues, eigenvectors
from depthpde.seeds import generator
from depthpde.solvers.term import Term, diffusion_term


def draw(*shape):
    return torch.randn(*shape, generator=generator(0, "steppers"), dtype=torch.float64)


def manufactured(alpha, sites=24, boundary=Boundary.NO_FLUX, angle=False):
    """Give terms u_t = αLu + 1/(1 + u²) + Φ(x, t) whose solution was chosen first.

    u(x, t) = g(x) (1 + ½ sin 2t),   Φ = u_t − αLu − 1/(1 + u²)

    A cosine under no-flux ends. Under fixed ends a parabola, whose curvature does not vanish there:
    the example of Hochbruck and Ostermann on which stiff methods lose order. With an angle, the
    parabola under no-flux ends, which it meets at a slope: worse still.
    """
    site = torch.arange(sites, dtype=torch.float64)
    if boundary is Boundary.NO_FLUX and not angle:
        shape = torch.cos(math.pi * (site + 0.5) / sites)
    else:
        x = (site + 1) / (sites + 1)
        shape = x * (1 - x)
    g = shape[None, :, None]
    diffusion = diffusion_term(alpha, boundary=boundary)
    spread = diffusion.rhs(g, 0.0)

    def exact(t):
        return g * (1 + 0.5 * math.sin(2 * t))

    def rest(u, t):
        growth = 1 + 0.5 * math.sin(2 * t)
        known = 1 / (1 + (g * growth) ** 2)
        return 1 / (1 + u**2) - known + g * math.cos(2 * t) - spread * growth

    return (diffusion, Term(name="reaction", rhs=rest)), exact


def logistic(u, t):
    return u * (1 - u)


def logistic_exact(u0, t):
    return u0 * math.exp(t) / (1 + u0 * (math.exp(t) - 1))


def heat_exact(u0, alpha, t):
    modes, rates = eigenvectors(u0.shape[1]), eigenvalues(u0.shape[1])
    return modes @ (torch.exp(alpha * t * rates)[:, None] * (modes.mT @ u0))


def march(stepper, u0, end, steps):
    """Take fixed steps."""
    state, dt = stepper.start(u0, 0.0), end / steps
    for _ in range(steps):
        state = stepper.attempt(state, dt).state
    return stepper.field(state)


def observed_order(make, u0, exact, steps, end=1.0):
    errors = [float((march(make(), u0, end, n) - exact).norm()) for n in steps]
    return math.log(errors[0] / errors[1]) / math.log(steps[1] / steps[0])
