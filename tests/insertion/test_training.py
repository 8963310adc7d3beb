"""Inserted layers under torch.compile, autocast and activation checkpointing."""

import pytest
import torch

from depthpde.insertion.hooks.container import PREFIX
from depthpde.insertion.insert import insert
from insertion.zoo import ZOO, padding, tokens

HARD = (("after_attention", "stream"), ("in_attention", "branch"), ("before_norm", "branch"))
"""A change carried over the branch, a part of a fused projection, a hook that reads arguments."""


def smoothed(name):
    model = ZOO[name].build()
    for position, route in HARD:
        insert(model, position, route=route, initial_ratio=0.1)
    return model


def run(name, model):
    animal = ZOO[name]
    return animal.call(model, animal.feed(), padding(left=animal.causal) if animal.pads else None)


@pytest.mark.parametrize(
    "name",
    [
        "torch_encoder_pre",
        *(pytest.param(n, marks=pytest.mark.drill) for n in ("llama", "x_encoder_pre")),
    ],
)
def test_compiled_whole_gives_the_same_outputs_and_gradients(name):
    model = smoothed(name)
    want = run(name, model)
    gradients = torch.autograd.grad(want.square().sum(), model.depthpde_insertion.parameters())
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    got = run(name, compiled)
    torch.testing.assert_close(got, want, rtol=0, atol=1e-6)
    mine = torch.autograd.grad(got.square().sum(), model.depthpde_insertion.parameters())
    torch.testing.assert_close(mine, gradients, rtol=1e-4, atol=1e-4)


def test_refuses_to_insert_or_remove_after_compiling():
    model = ZOO["bert"].build()
    inserted = insert(model, "after_ffn")
    compiled = torch.compile(model, backend="eager")
    compiled(tokens())
    with pytest.raises(ValueError, match="must not be compiled when inserting"):
        insert(model, "after_attention")
    with pytest.raises(ValueError, match="must not be compiled when inserting"):
        insert(compiled, "after_attention")
    with pytest.raises(ValueError, match="must not be compiled when removing"):
        inserted.remove()
    torch.compiler.reset()
    inserted.remove()
    assert torch.equal(compiled(tokens())[0], model(tokens())[0])


def test_refuses_a_model_whose_part_was_compiled_in_place():
    model = ZOO["bert"].build()
    model.encoder.layer[1].compile(backend="eager")
    with torch.no_grad():
        model(tokens())
    with pytest.raises(ValueError, match="must not be compiled when inserting"):
        insert(model, "after_ffn")


def test_another_compiled_model_is_no_hindrance():
    torch.compile(ZOO["torch_layer"].build(), backend="eager")(torch.ones(1, 2, 16))
    inserted = insert(ZOO["bert"].build(), "after_ffn")
    assert inserted.matches


def test_a_compiled_form_that_nobody_holds_any_more_is_no_hindrance():
    model = ZOO["bert"].build()
    compiled = torch.compile(model, backend="eager")
    compiled(tokens())
    compiled.__dict__["itself"] = compiled  # it goes with the garbage collector only
    with pytest.raises(ValueError, match="must not be compiled when inserting"):
        insert(model, "after_ffn")
    del compiled
    assert insert(model, "after_ffn").matches


@pytest.mark.parametrize("name", ["bert", "gpt2", "torch_encoder_pre", "x_encoder_pre"])
def test_autocast_keeps_the_outputs_type_and_value(name):
    model = smoothed(name)
    with torch.no_grad():
        want = run(name, model)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            got = run(name, model)
    distance = (got.float() - want)[padding(left=ZOO[name].causal)].abs().max()
    assert distance < 0.1 * want.abs().max()


@pytest.mark.parametrize("name", ["bert", "llama"])
def test_models_in_sixteen_bits_keep_full_precision_in_what_learns(name):
    model = ZOO[name].build().bfloat16()
    plain = run(name, model)
    inserted = insert(model, "after_attention", route="stream")
    assert all(weight.dtype is torch.float32 for weight in inserted.parameters())
    assert run(name, model).dtype is plain.dtype is torch.bfloat16
    assert torch.equal(run(name, model), plain)


@pytest.mark.parametrize("reentrant", [True, False])
@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_checkpointed_gradients_are_those_of_a_plain_pass_for_several_masks(name, reentrant):
    """Two batches of different padding before one backward: each block runs again with its own."""
    model = smoothed(name).train()
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0

    def gradients():
        model.zero_grad()
        outputs = [
            model(tokens(), attention_mask=padding(left=left).long(), use_cache=False)[0]
            for left in (False, True)
        ]
        sum(out.square().sum() for out in outputs).backward()
        return [weight.grad.clone() for weight in model.depthpde_insertion.parameters()]

    want = gradients()
    model.gradient_checkpointing_enable({"use_reentrant": reentrant})
    model.enable_input_require_grads()
    torch.testing.assert_close(gradients(), want, rtol=1e-4, atol=1e-4)
    assert any(key.startswith(PREFIX) for key in model.state_dict())
