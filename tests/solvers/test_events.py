import math

import pytest
import torch

from depthpde.operators.energy import dirichlet_energy
from depthpde.operators.laplacian import eigenvalues, eigenvectors
from depthpde.solvers.events import Event, energy_below, merged, norm_above
from depthpde.solvers.follow import Watching
from depthpde.solvers.integrate import integrate
from depthpde.solvers.term import diffusion_term
from depthpde.solvers.tolerance import Tolerance
from depthpde.solvers.trajectory import SolverStatus
from solvers.steppers.problems import logistic

U0 = torch.full((1, 2, 1), 0.1, dtype=torch.float64)


def run(dynamics, u0, end, *events, **options):
    return integrate(
        dynamics, u0, torch.linspace(0, end, 11), tolerance=Tolerance(rtol=1e-9),
        watching=Watching(events=events), **{"method": "adams", **options},
    )  # fmt: skip


def half(**options):
    return Event(
        name="half", measure=lambda u: u.amax(dim=(1, 2)), bound=0.5, rising=True, **options
    )


@pytest.mark.parametrize("method", ["adams", "tsit5", "dopri5"])
def test_a_terminal_event_stops_the_run_when_it_happens(method):
    path = run(logistic, U0, 6.0, half(), method=method)
    exact = math.log(9)  # 0.1 eᵗ / (1 + 0.1 (eᵗ − 1)) = ½
    assert path.status is SolverStatus.EVENT
    assert path.event("half") == pytest.approx(exact, abs=1e-5 if method != "adams" else 1e-7)
    assert float(path.times[-1]) == path.event("half")
    assert float(path.final.max()) == pytest.approx(0.5, abs=1e-12)
    assert (path.times.diff() > 0).all()
    assert path.states.shape[0] == len(path.times)


def test_a_recorded_event_lets_the_run_go_on():
    path = run(logistic, U0, 6.0, half(terminal=False))
    assert path.status is SolverStatus.REACHED
    assert path.event("half") == pytest.approx(math.log(9), abs=1e-7)
    assert float(path.times[-1]) == 6.0


def test_a_batch_stops_when_its_last_sample_has_passed():
    u0 = torch.cat([U0, 0.2 * torch.ones_like(U0)])
    path = run(logistic, u0, 6.0, half())
    times = {firing.sample: firing.time for firing in path.events}
    assert times[1] == pytest.approx(math.log(4), abs=1e-7)
    assert times[0] == pytest.approx(math.log(9), abs=1e-7)
    assert float(path.times[-1]) == pytest.approx(math.log(9), abs=1e-7)
    assert [firing.time for firing in path.events] == sorted(times.values())


def test_what_holds_at_the_start_fires_at_once():
    path = run(logistic, U0, 6.0, norm_above(0.05))
    assert path.status is SolverStatus.EVENT
    assert path.times.tolist() == [0.0]
    assert path.statistics.steps == 0


def test_an_event_that_never_fires_is_named():
    path = run(logistic, U0, 6.0, norm_above(50.0))
    assert path.status is SolverStatus.REACHED
    with pytest.raises(
        ValueError, match=r"an event that happened, got 'norm_above'.*t = 6.*longer"
    ):
        path.event("norm_above")


def test_events_need_names_of_their_own():
    with pytest.raises(ValueError, match=r"`events` must have names of their own.*rename"):
        run(logistic, U0, 6.0, half(), half())


def test_energy_falls_to_a_bound_when_the_cosine_mode_says():
    mode = eigenvectors(12)[None, :, 2, None]
    begin = float(dirichlet_energy(mode))
    path = run(diffusion_term(3.0), mode, 5.0, energy_below(begin / 100))
    exact = math.log(100) / (-2 * 3.0 * float(eigenvalues(12)[2]))
    assert path.event("energy_below") == pytest.approx(exact, rel=1e-9)


def test_merging_is_seen_when_two_become_one():
    u0 = torch.tensor([[[1.0], [3.0]]], dtype=torch.float64)
    path = run(lambda u, t: u.mean(1, keepdim=True) - u, u0, 20.0, merged(clusters=1, apart=0.01))
    # Half the distance e^{−t} · 1, so 2 e^{−t} = 0.01 · mean|u| = 0.02.
    assert path.event("merged") == pytest.approx(math.log(100), abs=1e-6)


def test_a_fixed_step_is_searched_too():
    path = integrate(
        logistic, U0, (0.0, 6.0), method="rk4", substeps=60, watching=Watching(events=[half()])
    )
    assert path.event("half") == pytest.approx(math.log(9), abs=1e-5)
