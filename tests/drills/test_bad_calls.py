"""Bad calls of the public API: at most 2 % end in a raw error, none is quietly wrong."""

from __future__ import annotations

import pytest
import torch

import depthpde as dp
from drills.bad_calls import Argument, Target, count, drill
from drills.bad_model_targets import every_target
from drills.bad_values import one_of, values

SHARE = 0.02


@pytest.fixture(scope="module")
def targets():
    return every_target()


def check(outcomes):
    """Count the outcomes, and show those that must not be."""
    counts = count(outcomes)
    print(counts)
    wrong = [each for each in outcomes if each.kind == "wrong"]
    raw = [each for each in outcomes if each.kind == "raw"]
    assert wrong == []
    assert len(raw) <= SHARE * len(outcomes), raw[:20]
    return counts


def test_a_hundred_bad_calls_are_refused_in_words(targets):
    light = [each for each in targets if each.weight >= 4 and each.name != "insert"]
    check(drill(light, 100, seed=7))


def test_a_raw_error_and_a_wrong_value_are_seen_as_such():
    def half(u, ratio):
        return dp.diffuse(u, 0.1) if ratio == 0.5 else u + ratio

    takes = {"u": Argument(lambda chance: torch.ones(1, 3, 2), always=True)}
    takes["ratio"] = Argument(one_of(0.5), values("x", 0.5), always=True)
    wrong = Target("half", half, takes, lambda given, result: "not the same")
    kinds = {each.kind for each in drill([wrong], 60, seed=0)}
    assert kinds == {"raw", "wrong", "refused"}


U = torch.randn(1, 4, 2)
ENCODER = torch.nn.TransformerEncoderLayer(8, 2, 8, batch_first=True)
REFUSALS = [
    (lambda: dp.diffuse(U, 10**400), "`ratio` must be finite, got more than"),
    (lambda: dp.diffuse_2d(U, torch.rand(1, 3, 2) / 9, (2, 2)), "`ratio` must be one number"),
    (lambda: dp.MultiscaleDiffusion(4, scales=3), "`scales` must be names or DiffusionScale"),
    (lambda: dp.MultiscaleDiffusion(4, scales=[3]), "`scales` must be names or DiffusionScale"),
    (lambda: dp.DiffusionScale(steps="2"), "`steps` must be a whole number"),
    (lambda: dp.Attention(4, 2, rotation=3), "`rotation` must be a function or None"),
    (lambda: dp.Classifier({"dim": 4}), "`config` must be a ModelConfig"),
    (
        lambda: dp.Classifier(dp.ModelConfig(), dp.tasks["listops-mini"], generator=3),
        "`generator` must be a torch.Generator",
    ),
    (
        lambda: dp.LanguageModel(dp.ModelConfig(vocabulary=5, length=4))(torch.full((1, 3), 9)),
        "`inputs` must be token ids from 0 to 4, got 9 to 9",
    ),
    (lambda: dp.LayerConfig(steps=1j), "`steps` must be a whole number"),
    (lambda: dp.generator(True), "`seed` must be a whole number"),
    (lambda: dp.integrate(3, U, [0, 1]), "`dynamics` must be a function"),
    (lambda: dp.integrate([3], U, [0, 1]), "`dynamics` must hold terms"),
    (lambda: dp.integrate(lambda u, t: u, U, ["a", "b"]), "`times` must be at least two"),
    (lambda: dp.integrate(lambda u, t: u, U, [0.0, float("inf")]), "`times` must be finite"),
    (lambda: dp.simulate("heat", U, [0, 1]), "`equation` must be an Equation"),
    (lambda: dp.simulate(dp.Equation(), U, [0, 1], events=dp.merged()), "must be a list of events"),
    (lambda: dp.simulate(dp.Equation(), U, [0, 1], events=[3]), "`events` must hold events"),
    (lambda: dp.Event(name="x", measure=3, bound=1.0), "`measure` must be a function"),
    (lambda: dp.norm_above("x"), "`bound` must be a finite number"),
    (lambda: dp.Equation(diffusion="x"), "`diffusion` must be a number or a tensor"),
    (lambda: dp.Equation(diffusion=torch.ones(0)), "`diffusion` must hold real numbers"),
    (lambda: dp.Equation(stabilizer=3), "`stabilizer` must be a Stabilizer or a Projection"),
    (lambda: dp.insert(ENCODER, "after_ffn", family=3), "`family` must be a Family"),
    (lambda: dp.insert(ENCODER, "after_ffn", stack=3), "`stack` must be the name of a module"),
    (
        lambda: dp.insert(ENCODER, "after_ffn", blocks="0"),
        "`blocks` must be a list of block numbers",
    ),
    (lambda: dp.audit(ENCODER, U, questions="future"), "`questions` must be a list of names"),
    (lambda: dp.probe(ENCODER, U, groups="drift"), "`groups` must be a list of names"),
    (lambda: dp.measures.attention.entropy(torch.ones(3)), "floating-point .batch, heads"),
    (lambda: dp.causal_conv1d(torch.ones(1, 2, 3).long(), torch.ones(2, 2)), "16 bits or more"),
    (lambda: dp.causal_conv1d(torch.ones(1, 2, 3), torch.ones(2, 2), U), "`bias` must have shape"),
    (lambda: dp.causal_conv1d_update(U, U, torch.ones(2)), "`x` must be .batch, dim. and `weight`"),
]


@pytest.mark.parametrize(("call", "printed"), REFUSALS)
def test_each_refusal_names_what_was_wanted_and_what_came(call, printed):
    with pytest.raises(ValueError, match=printed):
        call()


@pytest.mark.drill
@pytest.mark.parametrize("seed", range(8))
def test_twenty_thousand_bad_calls_are_refused_in_words(targets, seed, tally):
    counts = check(drill(targets, 2500, seed))
    tally("Bad calls of the public API, seeds 0 to 7", 2500, "at most 2 % raw, none quietly wrong")
    for name in ("fine", "refused", "raw"):
        tally(f"— of these {name}", counts[name], "counted")
