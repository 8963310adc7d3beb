import math

import torch

from depthpde.layers.stabilizer import Stabilizer
from depthpde.operators.reaction import fisher_kpp
from depthpde.seeds import generator
from depthpde.simulator.equation import Equation
from depthpde.simulator.work_precision import work_precision

BARE = Stabilizer(norm="none")


def start():
    return torch.rand(1, 16, 1, generator=generator(0, "work"), dtype=torch.float64)


def test_a_smaller_tolerance_costs_more_and_errs_less():
    equation = Equation(diffusion=5.0, reaction=fisher_kpp, stabilizer=BARE)
    points, floor = work_precision(equation, start(), (0.0, 2.0), methods=("auto", "rk4", "lie"))
    auto = [point for point in points if point.method == "auto"]
    assert auto[0].evaluations < auto[-1].evaluations
    assert auto[0].error > 1e2 * auto[-1].error > 0
    assert auto[-1].error < 1e-6
    assert floor < 1e-7
    # Few explicit steps of a stiff diffusion fail, and are shown as failed.
    assert any(math.isinf(point.error) or point.error > 1 for point in points)


def test_a_method_that_cannot_do_the_equation_is_left_out():
    equation = Equation(reaction=fisher_kpp, stabilizer=BARE)
    points, _ = work_precision(equation, start(), (0.0, 1.0), methods=("ark4", "tsit5"))
    assert {point.method for point in points} == {"tsit5"}
