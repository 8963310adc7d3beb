import math

import pytest
import torch

from depthpde.solvers.blow_up import BlowUpError
from depthpde.solvers.follow import Watching
from depthpde.solvers.integrate import integrate
from depthpde.solvers.term import Term, diffusion_term
from depthpde.solvers.trajectory import SolverStatus
from solvers.steppers.problems import draw, logistic

U0 = torch.full((1, 2, 1), 0.1, dtype=torch.float64)


def test_too_many_steps_raise_with_the_time_that_was_reached():
    with pytest.raises(ValueError, match=r"`max_steps`.*reach t = 6, got 3.*larger rtol"):
        integrate(logistic, U0, (0.0, 6.0), method="tsit5", watching=Watching(max_steps=3))


def test_where_wanted_a_failure_is_a_status():
    watching = Watching(max_steps=3, strict=False)
    path = integrate(logistic, U0, (0.0, 3.0, 6.0), method="tsit5", watching=watching)
    assert path.status is SolverStatus.TOO_MANY_STEPS
    assert 0 < float(path.times[-1]) < 6
    assert path.states.shape[0] == len(path.times)
    assert "max_steps" in path.message
    assert "too many steps" in repr(path)


def test_refuses_a_run_without_steps():
    with pytest.raises(ValueError, match="`max_steps` must be at least 1"):
        Watching(max_steps=0)


@pytest.mark.parametrize("method", ["tsit5", "adams", "etd4", "ark4", "auto"])
def test_a_blow_up_names_term_and_time_for_every_method(method):
    # u′ = u², u(0) = 1: infinite at t = 1.
    terms = (diffusion_term(0.1), Term(name="reaction", rhs=lambda u, t: u * u))
    u0 = torch.ones(1, 3, 1, dtype=torch.float64)
    with pytest.raises(BlowUpError, match="term 'reaction' pushes hardest") as caught:
        integrate(terms, u0, (0.0, 2.0), method=method)
    assert caught.value.term == "reaction"
    assert caught.value.time == pytest.approx(1.0, abs=0.05)


def test_a_blow_up_can_be_a_status_too():
    u0 = torch.ones(1, 3, 1, dtype=torch.float64)
    watching = Watching(strict=False)
    path = integrate(lambda u, t: u * u, u0, (0.0, 0.5, 2.0), method="tsit5", watching=watching)
    assert path.status is SolverStatus.BLEW_UP
    assert float(path.at(0.5).max()) == pytest.approx(2.0, abs=1e-4)
    assert float(path.times[-1]) == pytest.approx(1.0, abs=0.05)


def test_a_rate_that_is_no_number_ends_the_run():
    with pytest.raises(BlowUpError, match="blew up at t = "):
        integrate(lambda u, t: u * math.nan, U0, (0.0, 1.0), method="auto")


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_refuses_a_start_that_is_not_finite(bad):
    with pytest.raises(ValueError, match="`u0` must be finite"):
        integrate(logistic, torch.full((1, 2, 1), bad), (0.0, 1.0))


@pytest.mark.parametrize("method", ["rk4", "tsit5", "adams"])
def test_refuses_a_rate_of_another_shape(method):
    with pytest.raises(
        ValueError, match=r"term 'rhs' must have the field's shape \[1, 2, 1\].*\[1, 1"
    ):
        integrate(lambda u, t: u[:, :1], U0, (0.0, 1.0), method=method)


def test_progress_is_told_after_every_step():
    seen = []
    path = integrate(
        logistic, U0, (0.0, 6.0), method="tsit5", watching=Watching(progress=seen.append)
    )
    assert len(seen) == path.statistics.steps
    assert seen == sorted(seen)
    assert seen[-1] == 6.0


def test_statistics_count_what_was_done():
    calls = []

    def rest(u, t):
        calls.append(t)
        return logistic(u, t)

    terms = (diffusion_term(1.0), Term(name="reaction", rhs=rest))
    path = integrate(terms, draw(1, 6, 1).abs(), (0.0, 3.0), method="dopri5")
    found = path.statistics
    assert found.evaluations["reaction"] == len(calls)
    assert found.evaluations["diffusion"] == len(calls)
    assert len(calls) == 1 + 6 * (found.steps + found.rejected)
    assert found.seconds["reaction"] > 0
    assert 0 < found.largest_error <= 1


def test_nothing_is_kept_between_steps_unless_wanted():
    path = integrate(logistic, U0, (0.0, 6.0), method="tsit5", watching=Watching(dense=False))
    assert path.segments == ()
    with pytest.raises(ValueError, match=r"one of the 2 recorded times, got 3.*record more"):
        path.at(3.0)


def test_a_time_outside_the_path_is_refused():
    path = integrate(logistic, U0, (0.0, 6.0), method="tsit5")
    with pytest.raises(ValueError, match=r"within the path, \[0, 6\], got 7"):
        path.at(7.0)
