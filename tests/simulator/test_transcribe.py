import pytest
import torch

from depthpde.layers.stabilizer import Stabilizer
from depthpde.models.classifier import Classifier
from depthpde.models.config import ModelConfig
from depthpde.models.language import LanguageModel
from depthpde.models.vision import VisionTransformer
from depthpde.simulator.simulate import simulate
from depthpde.simulator.transcribe import follow, transcribe

SMALL = {"dim": 8, "heads": 2, "hidden": 16, "vocabulary": 11, "length": 12, "classes": 3}


def tokens() -> torch.Tensor:
    return torch.randint(11, (3, 12), generator=torch.Generator().manual_seed(0))


def mask() -> torch.Tensor:
    return torch.arange(12) < torch.tensor([[12], [7], [1]])


def make(kind=Classifier, **settings):
    config = ModelConfig(**{**SMALL, **settings}, blocks=3)
    return kind(config, generator=torch.Generator().manual_seed(1)).double().eval()


@pytest.mark.parametrize("weights", ["per_layer", "interpolated"])
@pytest.mark.parametrize(
    "stabilizer",
    [Stabilizer(), Stabilizer(norm="post", deepnorm=True), Stabilizer(residual=False)],
    ids=str,
)
def test_lie_steps_of_dt_1_give_the_models_own_states(weights, stabilizer):
    model = make(stabilizer=stabilizer)
    path, sites = follow(model, tokens(), mask())
    equation = transcribe(model, weights=weights)
    with torch.no_grad():
        ours = simulate(equation, path.states[0], path.times, method="lie", valid_mask=sites)
    torch.testing.assert_close(ours.states, path.states, rtol=0, atol=1e-13)


def test_what_is_followed_is_what_the_model_computes():
    model = make()
    path, _ = follow(model, tokens(), mask())
    field, _ = model.encoder(tokens(), mask())
    assert torch.equal(model.encoder.final_norm(path.final), field)
    assert path.times.tolist() == [0, 1, 2, 3]
    assert not any(each._forward_hooks for each in model.modules()), "no hook is left"


def test_the_site_of_cls_pooling_is_counted_in():
    model = make(pooling="cls")
    path, sites = follow(model, tokens(), mask())
    assert path.states.shape[2] == 13
    assert sites.shape == (3, 13)
    with torch.no_grad():
        ours = simulate(
            transcribe(model), path.states[0], path.times, method="lie", valid_mask=sites
        )
    torch.testing.assert_close(ours.states, path.states)


def test_a_decoder_and_a_vision_transformer_are_transcribed_too():
    decoder = make(LanguageModel, classes=None)
    images = torch.rand(2, 1, 8, 8, dtype=torch.float64)
    vision = make(VisionTransformer, patch=2, grid=(4, 4), length=None, vocabulary=None)
    for model, inputs in ((decoder, tokens()), (vision, images)):
        path, _ = follow(model, inputs)
        with torch.no_grad():
            ours = simulate(transcribe(model), path.states[0], path.times, method="lie")
        torch.testing.assert_close(ours.states, path.states)


def test_a_finer_step_moves_away_from_the_blocks_and_converges():
    model = make()
    path, sites = follow(model, tokens(), mask())
    equation = transcribe(model, weights="interpolated")

    def final(substeps):
        with torch.no_grad():
            return simulate(
                equation, path.states[0], path.times, method="lie", substeps=substeps,
                valid_mask=sites,
            ).final  # fmt: skip

    coarse, fine, finer = final(16), final(32), final(64)
    assert (path.final - finer).norm() > (coarse - finer).norm()
    assert torch.log2((coarse - fine).norm() / (fine - finer).norm()).item() == pytest.approx(
        1, abs=0.15
    )


def test_refuses_a_model_with_something_placed():
    with pytest.raises(ValueError, match="`model` must have nothing placed in it, got after_ffn"):
        transcribe(make(positions=("after_ffn",)))


def test_refuses_a_model_that_does_not_attend():
    with pytest.raises(ValueError, match="`model` must attend, got interaction 'lstm'"):
        transcribe(make(interaction="lstm"))


def test_refuses_dropout_that_is_on():
    with pytest.raises(ValueError, match="`model` must be in evaluation mode where it has dropout"):
        transcribe(make(dropout=0.1).train())
