import json

import pytest
import torch

from depthpde.data.tasks import TASKS
from depthpde.doctor.probe import GROUPS, ON_REQUEST, probe
from depthpde.layers.stabilizer import Stabilizer
from depthpde.models.classifier import Classifier
from depthpde.models.config import ModelConfig
from depthpde.models.language import LanguageModel
from depthpde.simulator.config import SimulatorConfig
from depthpde.simulator.learned import LanguageSimulator, Simulator, build_simulator
from depthpde.training.config import TrainingConfig
from depthpde.training.loop import train
from training.counting import make_split

SMALL = {"dim": 8, "heads": 2, "hidden": 16, "vocabulary": 11, "length": 12, "classes": 3}
STABILIZERS = [
    Stabilizer(),
    Stabilizer(kind="rms"),
    Stabilizer(norm="none"),
    Stabilizer(norm="post"),
    Stabilizer(norm="post", deepnorm=True),
    Stabilizer(residual=False),
    Stabilizer(norm="none", residual=False),
    Stabilizer(norm="post", residual=False),
]


def seeded(kind, config, **settings):
    return kind(config, generator=torch.Generator().manual_seed(3), **settings)


def tokens() -> torch.Tensor:
    return torch.randint(11, (3, 12), generator=torch.Generator().manual_seed(0))


def mask() -> torch.Tensor:
    return torch.arange(12) < torch.tensor([[12], [7], [1]])


@pytest.mark.parametrize("stabilizer", STABILIZERS, ids=str)
def test_lie_with_one_step_a_block_is_the_transformer(stabilizer):
    config = ModelConfig(**SMALL, blocks=3, stabilizer=stabilizer)
    transformer = seeded(Classifier, config).double()
    simulator = seeded(Simulator, config).double()
    assert all(
        torch.equal(value, transformer.state_dict()[name])
        for name, value in simulator.state_dict().items()
    )
    wanted, got = transformer(tokens(), mask()), simulator(tokens(), mask())
    if stabilizer.residual and stabilizer.norm != "post":
        assert torch.equal(got, wanted)
    else:  # u + (F − u) rounds once more than F
        torch.testing.assert_close(got, wanted, rtol=0, atol=1e-13)


def test_gradients_of_both_are_the_same():
    config = ModelConfig(**SMALL, blocks=2)
    models = [seeded(kind, config).double() for kind in (Classifier, Simulator)]
    for model in models:
        model(tokens(), mask()).square().sum().backward()
    for (name, a), b in zip(models[0].named_parameters(), models[1].parameters(), strict=True):
        assert a.grad is not None, name
        torch.testing.assert_close(a.grad, b.grad, rtol=1e-12, atol=1e-14)


def test_dropout_draws_the_same_numbers():
    config = ModelConfig(**SMALL, blocks=2, dropout=0.3)
    outputs = []
    for kind in (Classifier, Simulator):
        model = seeded(kind, config)
        torch.manual_seed(5)
        outputs.append(model(tokens(), mask()))
    assert torch.equal(*outputs)
    model.eval()
    assert not torch.equal(model(tokens(), mask()), outputs[1])


@pytest.mark.parametrize("method", ["euler", "lie", "strang", "heun", "rk4", "backward_euler"])
@pytest.mark.parametrize("weights", ["per_layer", "interpolated"])
def test_every_integrator_learns_and_leaves_padding_out(method, weights):
    config = ModelConfig(**SMALL, blocks=2)
    settings = SimulatorConfig(method=method, steps=2, weights=weights, diffusion=0.1)
    model = seeded(Simulator, config, simulator=settings)
    other = tokens().clone()
    other[~mask()] = 7
    output = model(tokens(), mask())
    torch.testing.assert_close(model(other, mask()), output)
    output.square().sum().backward()
    assert all(each.grad is not None for each in model.parameters())
    diffusivity = model.encoder.blocks[0].diffusivity
    assert (diffusivity.theta.grad != 0).any()


def test_integrators_agree_as_the_step_shrinks():
    config = ModelConfig(**SMALL, blocks=2)

    def logits(method, steps):
        settings = SimulatorConfig(method=method, steps=steps)
        return seeded(Simulator, config, simulator=settings).double()(tokens(), mask())

    exact = logits("rk4", 32)
    for method in ("euler", "lie", "heun", "strang"):
        coarse, fine = ((logits(method, n) - exact).norm() for n in (16, 32))
        order = 2 if method in ("heun", "strang") else 1
        assert torch.log2(coarse / fine).item() == pytest.approx(order, abs=0.15), method


def test_projection_keeps_the_field_on_the_sphere():
    config = ModelConfig(**SMALL, blocks=2, stabilizer=Stabilizer(norm="none"))
    settings = SimulatorConfig(projection=True, steps=3)
    model = seeded(Simulator, config, simulator=settings).double()
    seen = []
    model.encoder.blocks[-1].register_forward_hook(lambda m, i, out: seen.append(out))
    model(tokens())
    torch.testing.assert_close(seen[0].norm(dim=-1), torch.full((3, 12), 8**0.5).double())


@pytest.mark.parametrize("masked", [False, True])
def test_diffusion_leaves_the_class_site_alone(masked):
    config = ModelConfig(**SMALL, blocks=1, pooling="cls")
    settings = SimulatorConfig(diffusion=0.2)
    block = seeded(Simulator, config, simulator=settings).double().encoder.blocks[0]
    u = torch.randn(3, 13, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    valid = torch.nn.functional.pad(mask(), (1, 0), value=True) if masked else None
    diffusion = block.plan(u, valid).terms[0]
    assert diffusion.name == "diffusion"
    change = diffusion.rhs(u, 0.0)
    assert not change[:, 0].any()
    assert change[0, 1].any()
    alone = seeded(Simulator, ModelConfig(**SMALL, blocks=1), simulator=settings).double()
    inner = alone.encoder.blocks[0].plan(u[:, 1:], mask() if masked else None).terms[0]
    torch.testing.assert_close(change[:, 1:], inner.rhs(u[:, 1:], 0.0))


def test_it_trains_on_a_task_and_the_diffusivity_moves():
    settings = SimulatorConfig(method="heun", diffusion=0.1)
    split = make_split()
    config = ModelConfig(dim=16, heads=2, hidden=32, blocks=2, **facts(split))
    model = seeded(Simulator, config, simulator=settings)
    start = model.encoder.blocks[0].diffusivity().detach().clone()
    history = train(model, split, TrainingConfig(updates=40, batch_size=16, warmup=5, log_every=10))
    assert history.points[-1].loss < history.points[0].loss
    assert (model.encoder.blocks[0].diffusivity() != start).any()


def facts(split) -> dict:
    return {"vocabulary": split.vocabulary, "length": split.length, "classes": split.classes}


def test_a_decoder_never_shows_a_site_its_future():
    config = ModelConfig(**{**SMALL, "classes": None}, blocks=2)
    settings = SimulatorConfig(method="strang", steps=2, diffusion=0.2)
    model = seeded(LanguageSimulator, config, simulator=settings).double()
    changed = tokens().clone()
    changed[:, 6:] = (changed[:, 6:] + 1) % 11
    before, after = model(tokens())[:, :6], model(changed)[:, :6]
    assert torch.equal(before, after)
    plain = seeded(LanguageSimulator, config).double()
    assert torch.equal(plain(tokens()), seeded(LanguageModel, config).double()(tokens()))


def test_refuses_to_go_on_site_by_site():
    config = ModelConfig(**{**SMALL, "classes": None})
    with pytest.raises(ValueError, match="`cache` must be left out: a simulator runs whole"):
        seeded(LanguageSimulator, config).generate(tokens(), 1)


def test_a_trained_transformers_weights_are_taken_over():
    model = seeded(Classifier, ModelConfig(**SMALL, blocks=3)).double().eval()
    exact = Simulator.from_transformer(model)
    assert not exact.training
    assert torch.equal(exact(tokens(), mask()), model(tokens(), mask()))
    finer = Simulator.from_transformer(model, SimulatorConfig(steps=4, diffusion=0.1))
    assert not torch.allclose(finer(tokens(), mask()), model(tokens(), mask()))


def test_a_saved_simulator_comes_back_to_the_bit(tmp_path):
    settings = SimulatorConfig(method="heun", steps=2, diffusion=0.1)
    model = seeded(Simulator, ModelConfig(**SMALL), simulator=settings).eval()
    folder = model.save_pretrained(tmp_path / "model")
    assert json.loads((folder / "config.json").read_text())["simulator"]["method"] == "heun"
    again = Simulator.from_pretrained(folder)
    assert again.simulator == settings
    assert torch.equal(again(tokens()), model(tokens()))


def test_refuses_a_folder_that_holds_no_simulator(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"`path` must be a folder with config.json and"):
        Simulator.from_pretrained(tmp_path)
    folder = seeded(Classifier, ModelConfig(**SMALL)).save_pretrained(tmp_path / "classifier")
    with pytest.raises(ValueError, match="must be of a Simulator, got 'Classifier'"):
        Simulator.from_pretrained(folder)


def test_the_builder_takes_the_kind_of_the_task():
    config = ModelConfig(dim=8, heads=2)
    listops = build_simulator(config, SimulatorConfig(), TASKS["listops-mini"])
    assert type(listops) is Simulator
    language = build_simulator(config, SimulatorConfig(), TASKS["enwik8-mini"])
    assert type(language) is LanguageSimulator


def test_refuses_what_is_placed():
    config = ModelConfig(**SMALL, positions=("after_ffn",))
    with pytest.raises(ValueError, match="`positions` must be empty in a simulator, got after_ffn"):
        seeded(Simulator, config)


def test_refuses_blocks_that_do_not_attend():
    config = ModelConfig(**SMALL, interaction="lstm")
    with pytest.raises(ValueError, match=r"`interaction` must be attention.*got 'lstm'"):
        seeded(Simulator, config)


def test_refuses_a_norm_beside_the_projection():
    with pytest.raises(ValueError, match="`norm` must be 'none' where the simulator projects"):
        seeded(Simulator, ModelConfig(**SMALL), simulator=SimulatorConfig(projection=True))


@pytest.mark.parametrize("weights", ["per_layer", "interpolated"])
def test_attention_of_a_simulator_is_seen_as_that_of_its_transformer(weights):
    config = ModelConfig(**SMALL, blocks=3)
    settings = SimulatorConfig(method="lie", steps=2, weights=weights)
    models = (seeded(Classifier, config), seeded(Simulator, config, simulator=settings))
    seen = [{}, {}]
    for model, kept in zip(models, seen, strict=True):
        model.eval()
        stop = model.encoder.observe(lambda at, u, kept=kept: kept.setdefault(at, u))
        model(tokens(), mask())
        stop()
    parts = [at for at in seen[1] if at.position == "in_attention"]
    assert [(at.block, at.part) for at in parts] == [
        (k, part) for k in range(3) for part in ("query", "key", "value")
    ]
    # the first step of the first block begins where the Transformer's block does
    first = [at for at in parts if at.block == 0]
    assert all(torch.equal(seen[0][at], seen[1][at]) for at in first)


def test_a_probe_measures_attention_of_a_simulator_block_by_block():
    config = ModelConfig(**SMALL, blocks=3)
    models = (seeded(Classifier, config), seeded(Simulator, config))
    wanted, got = (probe(each, tokens(), groups=(*GROUPS, *ON_REQUEST)) for each in models)
    assert len(got["attention.step_kl"].values) == 2
    for name in ("attention.step_kl", "attention.entropy", "coupling.frozen"):
        assert got[name].values == wanted[name].values, name
