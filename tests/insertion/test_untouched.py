"""Whatever goes wrong, in whichever entry point: the model is left exactly as it was."""

import pytest
import torch
from torch import nn
from torch.nn.modules import module as torch_module

from depthpde.doctor.alarms.live import Doctor
from depthpde.doctor.diagnosis import diagnose
from depthpde.doctor.probe import probe
from depthpde.insertion.insert import insert
from depthpde.isolation.audit import audit
from depthpde.isolation.causality import check_causality
from depthpde.testing import assert_isolated
from insertion.nano import GPT, NANO
from insertion.zoo import ZOO, tokens


def snapshot(model):
    """Everything that must be the same afterwards."""
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks",
             "_forward_hooks_always_called", "_forward_hooks_with_kwargs")  # fmt: skip
    return {
        "modules": [(name, id(each), type(each)) for name, each in model.named_modules()],
        "hooks": [dict(getattr(each, kind)) for each in model.modules() for kind in hooks],
        "global hooks": dict(torch_module._global_forward_hooks),
        "modes": [each.training for each in model.modules()],
        "attributes": [sorted(vars(each)) for each in model.modules()],
        "weights": [(name, id(each), each._version, each.requires_grad, each.grad)
                    for name, each in model.named_parameters()],
        "random": torch.get_rng_state().tolist(),
        "grad mode": torch.is_grad_enabled(),
        "fast path": torch.backends.mha.get_fastpath_enabled(),
    }  # fmt: skip


def live(model, batch, **options):
    """A training pass under the doctor; the error may come from the model itself."""
    with Doctor(model, every=1, log=lambda line: None, **options) as doctor:
        model(**named(batch))
        doctor.step()


ENTRIES = {
    "insert": lambda model, batch: insert(model, "after_ffn", layer=Broken),
    "insert nowhere": lambda model, batch: insert(model, "between_words"),
    "check_causality": check_causality,
    "probe": probe,
    "probe with a loss": lambda model, batch: probe(model, batch, loss=broken_loss),
    "diagnose": diagnose,
    "audit": audit,
    "assert_isolated": assert_isolated,
    "behind a module": lambda model, batch: insert(
        model, at=first_block(model), batch=named(batch)
    ),
    "live": live,
}


def first_block(model):
    return next(name for name, _ in model.named_modules() if name.endswith(".0"))


def named(batch):
    return batch if isinstance(batch, dict) else {"input_ids": batch}


class Broken:
    """Builds no layer."""

    def __init__(self, dim, causal):
        pass


def broken_loss(output):
    raise ZeroDivisionError("a loss that fails")


class Fails(nn.Module):
    """Fails in the middle of a pass, after drawing a random number."""

    def __init__(self, error):
        super().__init__()
        self.error = error

    def forward(self, *args, **kwargs):
        torch.rand(2)
        raise self.error


def model_of(name):
    torch.manual_seed(3)
    model = ZOO[name].build().train()
    next(model.children()).eval()  # modes that differ
    next(model.parameters()).requires_grad_(False)
    return model


def failing(name, error):
    model = model_of(name)
    block = model.encoder.layer[1] if name == "bert" else model.transformer.h[1]
    setattr(block, "output" if name == "bert" else "mlp", Fails(error))
    return model


ERRORS = (RuntimeError("shapes"), KeyError("key"), MemoryError(), KeyboardInterrupt())
BATCHES = {
    "wrong shape": torch.randn(2, 3, 4, 5, 6),
    "token beyond the table": torch.full((2, 5), 10**6),
    "unknown argument": {"nonsense": tokens()},
    "empty": torch.zeros(0, 4, dtype=torch.long),
    "nothing": {},
    "on another device": tokens().to("meta"),
}


@pytest.mark.parametrize("name", ["bert", "gpt2"])
@pytest.mark.parametrize("entry", [each for each in ENTRIES if not each.startswith("insert")])
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_a_model_that_fails_inside_is_left_as_it_was(name, entry, error):
    model = failing(name, error)
    before = snapshot(model)
    with pytest.raises((type(error), ValueError)):
        ENTRIES[entry](model, {"input_ids": tokens()})
    after = snapshot(model)
    if entry == "live":  # the pass is the caller's own: it draws as it would alone
        del before["random"], after["random"]
    assert after == before


@pytest.mark.parametrize(
    "entry",
    ["check_causality", "probe", "diagnose", "audit", "assert_isolated", "behind a module"],
)
@pytest.mark.parametrize("batch", BATCHES)
def test_a_batch_the_model_cannot_take_is_one_sentence(entry, batch):
    model = model_of("bert")
    before = snapshot(model)
    with pytest.raises(ValueError, match=r"^`(batch|inputs|at)` (must|needs) [^\n]*$"):
        ENTRIES[entry](model, BATCHES[batch])
    assert snapshot(model) == before


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_model_on_the_meta_device_is_one_sentence(entry):
    model = model_of("bert").to("meta")
    before = snapshot(model)
    with pytest.raises(ValueError, match=r"^`(model|position)` must [^\n]*$"):
        ENTRIES[entry](model, tokens())
    assert snapshot(model) == before


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param(each, marks=[pytest.mark.drill] if number else [])
        for number, each in enumerate(ENTRIES)
    ],
)
def test_a_compiled_model_is_one_sentence(entry):
    model = model_of("bert")
    compiled = torch.compile(model, backend="eager")
    compiled(tokens())
    before = snapshot(model)
    with pytest.raises(ValueError, match=r"^`(model|position)` must [^\n]*$"):
        ENTRIES[entry](compiled, tokens())
    assert snapshot(model) == before
    torch.compiler.reset()


@pytest.mark.parametrize(
    "options",
    [{"layer": Broken}, {"layer": lambda dim, causal: Fails(RuntimeError("shapes"))},
     {"layer": "nonsense"}, {"blocks": [9]}, {"route": "stream", "initial_ratio": 9.0},
     {"causal": False}],
)  # fmt: skip
def test_an_insertion_that_is_refused_leaves_the_model_as_it_was(options):
    for model, family in ((model_of("gpt2"), None), (GPT().train(), NANO)):
        before = snapshot(model)
        with pytest.raises(ValueError, match="`"):
            insert(model, "after_ffn", family=family, **options)
        assert snapshot(model) == before


def test_gradients_asked_for_leave_the_batch_as_it_was():
    u = torch.randn(2, 5, 16)
    model = ZOO["torch_layer"].build()
    with pytest.raises(ZeroDivisionError):
        probe(model, u, loss=broken_loss)
    assert not u.requires_grad


class Int8(nn.Module):
    """A linear map whose weight is kept in eight bits."""

    def __init__(self, linear):
        super().__init__()
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self.scale = float(linear.weight.detach().abs().max()) / 127
        codes = (linear.weight.detach() / self.scale).round().to(torch.int8)
        self.weight = nn.Parameter(codes, requires_grad=False)

    def forward(self, u):
        return nn.functional.linear(u, self.weight.to(u.dtype) * self.scale)


def test_quantized_weights_take_an_insertion_and_are_not_measured_as_numbers():
    model = ZOO["bert"].build()
    for block in model.encoder.layer:
        for path in ("attention.self.query", "attention.self.value", "output.dense"):
            owner, _, leaf = path.rpartition(".")
            setattr(block.get_submodule(owner), leaf, Int8(block.get_submodule(path)))
    plain = model(tokens())[0]
    inserted = insert(model, "in_attention")
    assert torch.equal(model(tokens())[0], plain)
    assert {weight.dtype for weight in inserted.parameters()} == {torch.float32}
    inserted.remove()
    found = diagnose(model, tokens(), baseline=False)
    assert "no module of the block shows these weights" in found.unmeasured["spectrum.qk"]
    assert "drift.cosine" in found.trajectory
