"""The gallery: named systems, each with what is known about it in closed form.

u_t = D u + A[u] + R(u),   kept in bounds by S
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping

import torch
from scipy.integrate import solve_ivp
from scipy.optimize import minimize_scalar
from torch import Tensor
from torch.nn import functional

from depthpde.layers.stabilizer import Norm, Stabilizer
from depthpde.operators.boundary import Boundary
from depthpde.operators.energy import cosine_transform
from depthpde.operators.interaction import attention_weights
from depthpde.operators.laplacian import eigenvalues
from depthpde.operators.reaction import allen_cahn as two_wells
from depthpde.operators.reaction import fisher_kpp
from depthpde.seeds import generator
from depthpde.shapes import Field
from depthpde.simulator.equation import Equation, Projection
from depthpde.simulator.system import Known, System, View
from depthpde.simulator.trained import trained
from depthpde.solvers.clusters import count_clusters
from depthpde.solvers.trajectory import Trajectory

BARE = Stabilizer(norm=Norm.NONE)
SPHERE = Projection(kind="rms", radius=1.0)


class Systems(Mapping[str, System]):
    """The systems by name, built when they are asked for.

    >>> dp.systems["clustering"].vary(beta=9.0).parameters["beta"]
    9.0
    """

    def __getitem__(self, name: str) -> System:
        """Build one with its usual parameters."""
        return BUILDERS[name]()

    def __iter__(self) -> Iterator[str]:
        """Name them."""
        return iter(BUILDERS)

    def __len__(self) -> int:
        """Count them."""
        return len(BUILDERS)


def clustering(
    beta: float = 4.0, tokens: float = 32, dim: float = 3, diffusion: float = 0.0, end: float = 30.0
) -> System:
    """Tokens on the sphere attract each other and end in one point (Geshkovski et al.)."""

    def known(path: Trajectory) -> tuple[Known, ...]:
        count = float(count_clusters(path.final, apart=0.05))
        return (Known(quantity="clusters at the end", predicted=1, computed=count, tolerance=0),)

    return _system(
        clustering,
        locals(),
        equation=_on_sphere(beta, diffusion),
        u0=_sphere(int(tokens), int(dim), "clustering"),
        times=_times(end, 121),
        known=known,
        view=View.TOKENS,
    )


def metastability(beta: float = 60.0, tokens: float = 48, end: float = 60.0) -> System:
    """On the circle at low temperature, clusters form at once and then hardly move."""

    def known(path: Trajectory) -> tuple[Known, ...]:
        early, late = path.at(0.5 * end), path.at(end)
        counts = [float(count_clusters(u, apart=0.05)) for u in (early, late)]
        moved = float((late - early).norm(dim=-1).median())
        return (
            Known(quantity="change in the number of clusters over the last half", predicted=0,
                  computed=counts[1] - counts[0], tolerance=1),
            Known(quantity="median way of a token over the last half, to leading order e^{−β…}",
                  predicted=0.0, computed=moved, tolerance=0.1),
        )  # fmt: skip

    return _system(
        metastability,
        locals(),
        equation=_on_sphere(beta),
        u0=_sphere(int(tokens), 2, "metastability"),
        times=_times(end, 121),
        known=known,
        view=View.TOKENS,
    )


def equiangular(
    beta: float = 2.0, tokens: float = 8, cosine: float = 0.05, end: float = 4.0
) -> System:
    """Tokens at equal angles close at a rate that is known exactly."""
    n = int(tokens)

    def known(path: Trajectory) -> tuple[Known, ...]:
        def rate(t: float, r: list[float]) -> list[float]:
            e, top = math.exp(beta * r[0]), math.exp(beta)
            return [2 * e * (1 - r[0]) * ((n - 1) * r[0] + 1) / (top + (n - 1) * e)]

        found = solve_ivp(rate, (0, end), [cosine], rtol=1e-11, atol=1e-12, method="DOP853")
        measured = float(path.final[0, 0] @ path.final[0, 1])
        exact = float(found.y[0, -1])
        return (
            Known(quantity="pairwise cosine at the end", predicted=exact, computed=measured,
                  tolerance=1e-4),
        )  # fmt: skip

    gram = torch.full((n, n), cosine, dtype=torch.float64).fill_diagonal_(1.0)
    return _system(
        equiangular,
        locals(),
        equation=_on_sphere(beta),
        u0=torch.linalg.cholesky(gram)[None],
        times=_times(end, 61),
        known=known,
        view=View.TOKENS,
    )


def gaussian(tokens: float = 256, end: float = 2.0) -> System:
    """A Gaussian under linear attention keeps its axes, and each variance obeys s′ = −2s²."""
    draw = torch.randn(1, int(tokens), 3, generator=generator(0, "gaussian"), dtype=torch.float64)
    u0 = draw * torch.tensor([1.0, 0.5, 2.0], dtype=torch.float64)

    def variances(u: Field) -> Tensor:
        return torch.linalg.eigvalsh(u[0].mT @ u[0] / u.shape[1])

    def known(path: Trajectory) -> tuple[Known, ...]:
        start = variances(u0)
        exact, found = start / (1 + 2 * start * end), variances(path.final)
        return tuple(
            Known(quantity=f"variance along axis {i + 1} at the end", predicted=float(exact[i]),
                  computed=float(found[i]), tolerance=1e-4)
            for i in range(3)
        )  # fmt: skip

    equation = Equation(interaction=lambda u: -(u @ (u.mT @ u)) / u.shape[1], stabilizer=BARE)
    return _system(
        gaussian, locals(), equation=equation, u0=u0, times=_times(end, 61), known=known
    )  # fmt: skip


def fisher(
    diffusion: float = 4.0, growth: float = 1.0, attention: float = 0.0, end: float = 24.0
) -> System:
    """A front of Fisher and Kolmogorov invades at the speed 2√(rD)."""
    sites, begin = 160, 0.4 * end

    def known(path: Trajectory) -> tuple[Known, ...]:
        def front(t: float) -> float:
            u = path.at(t)[0, :, 0]
            site = int((u >= 0.5).nonzero().max())
            return site + float((u[site] - 0.5) / (u[site] - u[site + 1]))

        # The least speed of e^{λ(ct − x)} on the lattice, and Bramson's delay 3 ln(t) / 2λ.
        least = minimize_scalar(
            lambda x: (growth + 2 * diffusion * (math.cosh(x) - 1)) / x,
            bounds=(1e-3, 5), method="bounded",
        )  # fmt: skip
        slowest, steepness = float(least.fun), float(least.x)
        delay = 1.5 / steepness * math.log(end / begin) / (end - begin)
        speed = (front(end) - front(begin)) / (end - begin)
        note = "" if attention == 0 else ", attention left out of the formula"
        return (
            Known(quantity=f"speed of the front, lattice and delay included{note}",
                  predicted=slowest - delay, computed=speed, tolerance=0.02 * slowest),
            Known(quantity="the same by 2√(rD) alone", predicted=2 * math.sqrt(growth * diffusion),
                  computed=speed, tolerance=0.1 * slowest),
        )  # fmt: skip

    # Rounding ahead of the front grows like e^{rt}: much longer than this no solver can follow it.
    u0 = torch.zeros(1, sites, 1, dtype=torch.float64)
    u0[:, :10] = 1.0
    equation = Equation(
        diffusion=diffusion,
        interaction=_attend(attention),
        reaction=lambda u: fisher_kpp(u, growth),
        stabilizer=BARE,
    )
    return _system(fisher, locals(), equation=equation, u0=u0, times=_times(end, 121), known=known)


def allen_cahn(diffusion: float = 12.0, attention: float = 0.0, end: float = 30.0) -> System:
    """Two phases part, and the wall between them takes the shape tanh(x/√(2D))."""
    sites = 120

    def known(path: Trajectory) -> tuple[Known, ...]:
        u = path.final[0, :, 0]
        slope = float((u[sites // 2] - u[sites // 2 - 1]).abs())
        exact = 2 * math.tanh(0.5 / math.sqrt(2 * diffusion))
        return (
            Known(quantity="step of the wall between its two middle sites", predicted=exact,
                  computed=slope, tolerance=0.02 * exact if attention == 0 else math.inf),
            Known(quantity="way of the wall", predicted=0.0, computed=float(u.mean()),
                  tolerance=1e-6 if attention == 0 else math.inf),
        )  # fmt: skip

    x = torch.arange(sites, dtype=torch.float64) - (sites - 1) / 2
    equation = Equation(
        diffusion=diffusion,
        interaction=_attend(attention),
        reaction=two_wells,
        stabilizer=BARE,
    )
    u0 = torch.sign(x)[None, :, None] * 0.5
    return _system(
        allen_cahn, locals(), equation=equation, u0=u0, times=_times(end, 91), known=known
    )  # fmt: skip


def turing(slow: float = 1.0, fast: float = 40.0, side: float = 128, end: float = 30.0) -> System:
    """An activator that spreads slowly and its inhibitor that spreads fast draw stripes."""
    sites = int(side)
    return _turing(turing, locals(), (sites,), slow, fast, end)


def turing_2d(slow: float = 1.0, fast: float = 40.0, side: float = 32, end: float = 30.0) -> System:
    """The same pair over the plane draws spots."""
    return _turing(turing_2d, locals(), (int(side), int(side)), slow, fast, end)


def rank_collapse(tokens: float = 24, dim: float = 8, end: float = 8.0) -> System:
    """Attention without residuals drives every token to the mean: rank one."""

    def apart(u: Field) -> float:
        return float((u - u.mean(dim=1, keepdim=True)).norm() / u.norm())

    def known(path: Trajectory) -> tuple[Known, ...]:
        rate = math.log(apart(path.at(0.5 * end)) / apart(path.at(end))) / (0.5 * end)
        return (
            Known(quantity="decay rate of the distance to rank one, late", predicted=1.0,
                  computed=rate, tolerance=0.15),
        )  # fmt: skip

    def attend(u: Field) -> Field:
        return attention_weights(u, u) @ u

    u0 = torch.randn(
        1, int(tokens), int(dim), generator=generator(0, "rank"), dtype=torch.float64
    )  # fmt: skip
    equation = Equation(
        interaction=attend, stabilizer=Stabilizer(norm=Norm.NONE, residual=False)
    )  # fmt: skip
    return _system(
        rank_collapse, locals(), equation=equation, u0=0.5 * u0, times=_times(end, 81), known=known
    )


def _on_sphere(beta: float, diffusion: float = 0.0) -> Equation:
    return Equation(diffusion=diffusion, interaction=_attend(1.0, beta), stabilizer=SPHERE)


def _attend(strength: float, beta: float = 1.0) -> Callable[[Field], Field] | None:
    """Attend to all tokens; None at strength 0. Both may hold one number a sample."""
    if isinstance(strength, int | float) and strength == 0:
        return None

    def attend(u: Field) -> Field:
        return strength * (attention_weights(u, u, gain=beta) @ u)

    return attend


def _sphere(tokens: int, dim: int, name: str) -> Field:
    draw = torch.randn(1, tokens, dim, generator=generator(0, name), dtype=torch.float64)
    return functional.normalize(draw, dim=-1)


def _times(end: float, count: int) -> tuple[float, ...]:
    return tuple(end * i / (count - 1) for i in range(count))


FEED, TAKE = 0.1, 0.9  # Schnakenberg: a′ = FEED − a + a²b,  b′ = TAKE − a²b


def _turing(
    build: Callable[..., System],
    chosen: dict[str, object],
    sides: tuple[int, ...],
    slow: float,
    fast: float,
    end: float,
) -> System:
    rest = FEED + TAKE, TAKE / (FEED + TAKE) ** 2
    jacobian = torch.tensor(
        [[-1 + 2 * rest[0] * rest[1], rest[0] ** 2], [-2 * rest[0] * rest[1], -(rest[0] ** 2)]],
        dtype=torch.float64,
    )
    spread = torch.tensor([slow, fast], dtype=torch.float64)

    def growth(decay: Tensor) -> Tensor:
        """Give the dispersion relation: the largest real part for each Laplacian eigenvalue."""
        blocks = jacobian + torch.diag_embed(decay[..., None] * spread)
        return torch.linalg.eigvals(blocks).real.amax(dim=-1)

    def amplitude(u: Field) -> Tensor:
        """Expand the activator's departure from rest in cosines, one axis for each side."""
        early = (u[0, :, :1] - rest[0]).reshape(*sides, 1)
        if len(sides) == 1:
            return cosine_transform(early[None])[0, :, 0]
        return cosine_transform(cosine_transform(early).transpose(0, 1))[..., 0]

    def known(path: Trajectory) -> tuple[Known, ...]:
        decay = eigenvalues(sides[0])
        curve = growth(decay if len(sides) == 1 else decay[:, None] + decay[None])
        fastest = int(curve.argmax())
        begin, stop = 0.1 * end, 0.2 * end
        grown = (
            amplitude(path.at(stop)).flatten()[fastest]
            / amplitude(path.at(begin)).flatten()[fastest]
        )
        rate, predicted = float(grown.abs().log()) / (stop - begin), float(curve.max())
        return (
            Known(quantity="growth rate of the dispersion relation's fastest mode, early on",
                  predicted=predicted, computed=rate, tolerance=0.1 * predicted),
        )  # fmt: skip

    def react(u: Field) -> Field:
        a, b = u[..., :1], u[..., 1:]
        made = a.square() * b
        return torch.cat([FEED - a + made, TAKE - made], dim=-1)

    draw = torch.randn(
        1, math.prod(sides), 2, generator=generator(0, "turing"), dtype=torch.float64
    )  # fmt: skip
    grid = (sides[0], sides[1]) if len(sides) == 2 else None
    equation = Equation(
        diffusion=spread, reaction=react, stabilizer=BARE, boundary=Boundary.NO_FLUX, grid=grid
    )
    return _system(
        build,
        chosen,
        equation=equation,
        u0=torch.tensor(rest, dtype=torch.float64) + 0.01 * draw,
        times=_times(end, 91),
        known=known,
        view=View.FIELD if grid is None else View.IMAGE,
    )


def _system(
    build: Callable[..., System],
    chosen: dict[str, object],
    *,
    equation: Equation,
    u0: Field,
    times: tuple[float, ...],
    known: Callable[[Trajectory], tuple[Known, ...]],
    view: View = View.FIELD,
) -> System:
    names = inspect.signature(build).parameters
    values = {
        name: float("nan") if isinstance(value, Tensor) else float(value)  # type: ignore[arg-type]
        for name, value in chosen.items()
        if name in names
    }
    return System(
        name=build.__name__,
        title=(inspect.getdoc(build) or "").splitlines()[0],
        equation=equation,
        u0=u0,
        times=times,
        known=known,
        view=view,
        parameters=values,
        stacked=STACKED.get(build.__name__, ()),
        build=build,
    )


STACKED = {
    "clustering": ("beta", "diffusion"),
    "metastability": ("beta",),
    "equiangular": ("beta",),
    "fisher": ("diffusion", "growth", "attention"),
    "allen_cahn": ("diffusion", "attention"),
}
"""Parameters that may be a tensor [batch, 1, 1]: they change numbers of the equation alone."""
BUILDERS: dict[str, Callable[..., System]] = {
    build.__name__: build
    for build in (
        clustering, metastability, equiangular, gaussian, fisher, allen_cahn, turing, turing_2d,
        rank_collapse, trained,
    )
}  # fmt: skip
"""Every system and what builds it."""
SYSTEMS = Systems()
