"""A peer as a backend: torchdiffeq's methods on our equations.

    method="torchdiffeq:dopri8"        u_t = Σ_k F_k(u, t) by torchdiffeq.odeint

Nothing of it is rewritten here; it is an optional extra, and the judge of our own methods.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from depthpde.errors import check_name
from depthpde.shapes import Field
from depthpde.solvers.term import Term, add_terms
from depthpde.solvers.tolerance import Tolerance

PREFIX = "torchdiffeq:"


def is_peer(method: str) -> bool:
    """Tell whether a method's name belongs to torchdiffeq."""
    return method.startswith(PREFIX)


def solve_by_peer(
    method: str,
    terms: tuple[Term, ...],
    u: Field,
    times: Sequence[float],
    tolerance: Tolerance,
    project: Callable[[Field], Field] | None = None,
) -> list[Field]:
    """Integrate by one of torchdiffeq's methods.

    Args:
        method: `torchdiffeq:` and the name of the method there.
        terms: The terms of the equation.
        u: The field at the first time.
        times: Where it is wanted.
        tolerance: Becomes torchdiffeq's `rtol` and `atol`.
        project: Applied to what comes out, where the field must stay on a surface.

    Returns:
        The field at every time but the first.
    """
    try:
        from torchdiffeq import odeint
        from torchdiffeq._impl.odeint import SOLVERS
    except ModuleNotFoundError as error:
        raise ValueError(
            f"`method` must be one of our own where torchdiffeq is not installed, got {method!r}; "
            "install it with pip install 'depthpde[peers]', or use 'auto'"
        ) from error
    name = check_name("method", method.removeprefix(PREFIX), SOLVERS)
    whole = add_terms(terms)

    def rate(t: Tensor, state: Field) -> Field:
        return whole.rhs(state, float(t))

    clock = torch.tensor(list(times), dtype=torch.float64, device=u.device)
    states = odeint(
        rate, u, clock, method=name, rtol=tolerance.rtol, atol=tolerance.absolute
    )[1:]  # fmt: skip
    return [project(state) if project else state for state in states]
