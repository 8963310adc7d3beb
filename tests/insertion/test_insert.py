import copy
import gc
import weakref

import pytest
import torch
from torch import nn

from depthpde.insertion.families.recognition import FAMILIES, recognise
from depthpde.insertion.family import Family, NormOrder, out_of
from depthpde.insertion.hooks.container import PREFIX
from depthpde.insertion.insert import insert
from depthpde.layers.diffusion import Diffusion
from insertion.zoo import BERT, DIM, LLAMA, ZOO, embedded, pixels, spread, tokens

EVERYWHERE = ("after_embedding", "before_norm", "in_attention", "after_ffn", "between_blocks")


@pytest.fixture
def bert():
    return ZOO["bert"].build()


def bert_output(model):
    return model(tokens()).last_hidden_state


def test_every_known_family_has_a_model_in_the_walk():
    seen = {recognise(animal.build()).family.name for animal in ZOO.values()}
    assert {family.name for family in FAMILIES} - seen == {"timm VisionTransformer"}


@pytest.mark.parametrize(
    ("model", "config", "family"),
    [
        ("XLMRobertaModel", "XLMRobertaConfig", "Hugging Face BERT"),
        ("ElectraModel", "ElectraConfig", "Hugging Face BERT"),
        ("MistralModel", "MistralConfig", "Hugging Face Llama"),
        ("Qwen2ForCausalLM", "Qwen2Config", "Hugging Face Llama"),
    ],
)
def test_models_of_the_same_blocks_are_served_by_one_description(model, config, family):
    import transformers

    settings = LLAMA if "Llama" in family else BERT
    built = spread(getattr(transformers, model)(getattr(transformers, config)(**settings)))
    assert recognise(built).family.name == family
    plain = built(tokens())[0]
    inserted = insert(built, "after_ffn")
    assert torch.equal(built(tokens())[0], plain)
    inserted.remove()


def test_llamas_blocks_made_bidirectional_take_the_symmetric_form():
    import transformers

    special = {"pad_token_id": 0, "mask_token_id": 3, "eos_token_id": 2}
    model = transformers.EuroBertModel(transformers.EuroBertConfig(**LLAMA | special))
    inserted = insert(model, "after_ffn")
    assert not any(layer.is_causal for layer in inserted.layers.values())
    for layer in model.layers:
        del layer.self_attn.is_causal
    inserted.remove()
    inserted = insert(model, "after_ffn")  # blocks that do not say so count as causal
    assert all(layer.is_causal for layer in inserted.layers.values())
    inserted.remove()
    inserted = insert(model, "after_ffn", causal=False)
    assert not any(layer.is_causal for layer in inserted.layers.values())


@pytest.mark.parametrize("name", ["Olmo2", "Cohere", "Glm4"])
def test_blocks_that_only_resemble_a_known_one_are_found_by_running_them(name):
    import transformers

    model = getattr(transformers, f"{name}Model")(
        getattr(transformers, f"{name}Config")(**LLAMA | {"eos_token_id": 2, "pad_token_id": 0})
    )
    inserted = insert(model, "after_ffn")
    assert inserted.family.name == f"traced {name}DecoderLayer"
    assert all(layer.is_causal for layer in inserted.layers.values())


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("GPTBigCode", {"n_embd": DIM, "n_head": 4, "n_layer": 2, "multi_query": True}),
        ("GPTBigCode", {"n_embd": DIM, "n_head": 4, "n_layer": 2, "multi_query": False}),
        ("OpenAIGPT", {"n_embd": DIM, "n_head": 4, "n_layer": 2}),
        ("GPT2", {"n_embd": DIM, "n_head": 4, "n_layer": 2, "add_cross_attention": True}),
        ("Longformer", BERT | {"attention_window": 4}),
    ],
)
def test_values_that_no_module_shows_alone_are_refused(name, settings):
    import transformers

    config = getattr(transformers, f"{name}Config")(**settings)
    with pytest.raises(
        ValueError, match=r"'in_attention' cannot be had in traced .*; it has after"
    ):
        insert(getattr(transformers, f"{name}Model")(config), "in_attention")


def test_refuses_a_stack_with_other_modules_between_its_blocks():
    model = ZOO["llama"].build()
    model.model.layers.insert(1, nn.Linear(DIM, DIM))
    with pytest.raises(ValueError, match=r"nothing.*in 'model.layers', got 1 of 3"):
        insert(model, "between_blocks")


def test_a_model_around_the_blocks_is_searched():
    class Mine(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(ZOO["torch_layer"].build() for _ in range(3))

        def forward(self, u):
            for layer in self.layers:
                u = layer(u)
            return u

    model = Mine()
    inserted = insert(model, "between_blocks", blocks=[0, 2])
    assert [match.module for match in inserted.matches] == ["layers.0", "layers.2"]


def test_prints_what_matched(bert):
    inserted = insert(bert, "in_attention", blocks=[1])
    assert str(inserted).splitlines() == [
        "Diffusion · in_attention · branch · Hugging Face BERT, post-norm",
        "  encoder.layer.1.attention.self.value  output  [batch, length, 16]  16 parameters",
        "16 parameters added to 6,272 (0.255 %)",
    ]


def test_only_the_chosen_blocks_are_touched(bert):
    plain = bert.encoder.layer[0](torch.ones(1, 3, DIM))
    insert(bert, "after_ffn", blocks=[1], initial_ratio=0.2)
    assert torch.equal(bert.encoder.layer[0](torch.ones(1, 3, DIM)), plain)


def test_inserted_layers_learn_from_the_identity_on(bert):
    inserted = insert(bert, "after_embedding")
    optimizer = torch.optim.SGD(inserted.parameters(), lr=1e-2)
    before = bert_output(bert).detach()
    for _ in range(3):
        optimizer.zero_grad()
        (-(bert_output(bert) - before - 1e-3).square().sum()).backward()
        optimizer.step()
    (layer,) = inserted.layers.values()
    assert (layer.ratio > 0).any()


def test_saved_weights_come_back_and_are_all_that_was_saved(bert, tmp_path):
    from safetensors.torch import load_file

    trained = insert(bert, "after_ffn", layer="multiscale", initial_ratio=0.2)
    with torch.no_grad():
        for weight in trained.parameters():
            weight.add_(0.3)
    want = bert_output(bert)
    trained.save(tmp_path / "new" / "added.safetensors")
    (tmp_path / "new" / "added.safetensors").rename(tmp_path / "added.safetensors")
    assert all(key.startswith(PREFIX) for key in load_file(tmp_path / "added.safetensors"))
    trained.remove()
    again = insert(bert, "after_ffn", layer="multiscale", initial_ratio=0.1)
    assert not torch.equal(bert_output(bert), want)
    again.load(tmp_path / "added.safetensors")
    assert torch.equal(bert_output(bert), want)


def test_removed_model_is_the_original(bert):
    keys, plain = list(bert.state_dict()), bert_output(bert)
    inserted = [insert(bert, position, initial_ratio=0.1) for position in EVERYWHERE]
    assert [key for key in bert.state_dict() if not key.startswith(PREFIX)] == keys
    for each in inserted:
        each.remove()
    assert list(bert.state_dict()) == keys
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in bert.modules())
    assert torch.equal(bert_output(bert), plain)
    assert "removed" in str(inserted[0])


def test_deep_copy_is_wired_to_its_own_layers(bert):
    inserted = insert(bert, "after_attention", route="stream", initial_ratio=0.2)
    twin = copy.deepcopy(bert)
    want = bert_output(bert)
    with torch.no_grad():
        for weight in inserted.parameters():
            weight.fill_(-9.0)
    assert torch.equal(bert_output(twin), want)
    assert not torch.equal(bert_output(bert), want)


@pytest.mark.parametrize("route", ["branch", "stream"])
def test_a_model_that_has_run_can_be_copied_and_saved_and_keeps_no_cache_alive(route, tmp_path):
    model = ZOO["gpt2"].build()
    insert(model, "after_attention", route=route, initial_ratio=0.2)
    model(tokens(), labels=tokens()).loss.backward()
    torch.save(model, tmp_path / "model.pt")
    again = torch.load(tmp_path / "model.pt", weights_only=False)
    with torch.no_grad():
        want = model(tokens()).logits
        assert torch.equal(copy.deepcopy(model)(tokens()).logits, want)
        assert torch.equal(again(tokens()).logits, want)
        out = model(tokens(), use_cache=True)
        keys = weakref.ref(out.past_key_values.layers[0].keys)
        del out
        gc.collect()
    assert keys() is None


def test_a_model_with_checkpointed_activations_can_be_copied(bert):
    insert(bert, "after_attention", route="stream", initial_ratio=0.2)
    bert.train()
    bert.gradient_checkpointing_enable({"use_reentrant": False})
    bert_output(bert).sum().backward()
    copy.deepcopy(bert)


def test_vision_models_diffuse_over_the_plane_and_leave_the_class_token_alone():
    model = ZOO["vit"].build()
    inserted = insert(model, "after_embedding", initial_ratio=0.1)
    (layer,) = inserted.layers.values()
    assert layer.grid == (2, 3)
    fields = []
    model.layers[0].layernorm_before.register_forward_pre_hook(
        lambda module, args: fields.append(args[0])
    )
    embedding = model.embeddings(pixels())
    model(pixels())
    assert torch.equal(fields[0][:, 0], embedding[:, 0])
    torch.testing.assert_close(fields[0][:, 1:], layer(embedding[:, 1:]))


def test_an_encoder_called_with_a_causal_mask_takes_the_upwind_form_on_request():
    encoder = ZOO["torch_encoder_pre"].build()
    mask = nn.Transformer.generate_square_subsequent_mask(7)
    symmetric = insert(encoder, "after_ffn", initial_ratio=0.1)
    with pytest.raises(ValueError, match="`is_causal=True` asks for causal attention"):
        encoder(embedded(), mask=mask, is_causal=True)
    symmetric.remove()
    insert(encoder, "after_ffn", initial_ratio=0.1, causal=True)
    changed = embedded()
    changed[:, 4:] += 1
    with torch.no_grad():
        before, after = (encoder(u, mask=mask, is_causal=True) for u in (embedded(), changed))
    assert torch.equal(before[:, :4], after[:, :4])


def test_refuses_a_symmetric_layer_in_a_causal_model():
    model = ZOO["gpt2"].build()
    with pytest.raises(ValueError, match=r"Diffusion.*its future"):
        insert(model, "after_ffn", layer=lambda dim, causal: Diffusion(dim))
    with pytest.raises(ValueError, match=r"`causal`.*Face GPT-2"):
        insert(model, "after_ffn", causal=False)
    assert not hasattr(model, PREFIX)


class Shift(nn.Module):
    """A layer that does not say whether it is causal."""

    def __init__(self, by: int) -> None:
        super().__init__()
        self.by = by

    def forward(self, u, valid_mask=None):
        return (u + u.roll(self.by, dims=1)) / 2


def test_a_layer_that_does_not_say_is_tried():
    class Past(Shift):
        def forward(self, u, valid_mask=None):
            return (u + torch.cat((u[:, :1], u[:, :-1]), dim=1)) / 2

    model = ZOO["gpt2"].build()
    with pytest.raises(ValueError, match=r"Shift.*its future"):
        insert(model, "after_ffn", layer=lambda dim, causal: Shift(-1))
    insert(model, "after_ffn", layer=lambda dim, causal: Past(1))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_a_layer_is_tried_in_its_own_precision(dtype):
    class Own(nn.Linear):
        def forward(self, u, valid_mask=None):
            return super().forward(u)

    model = ZOO["gpt2"].build().to(dtype)
    insert(model, "after_ffn", layer=lambda dim, causal: Own(dim, dim).to(dtype))
    assert model(tokens()).logits.dtype is dtype


def test_a_layer_for_the_plane_is_not_tried_on_a_line():
    class OverThePlane(nn.Module):
        def forward(self, u, valid_mask=None):
            return u.reshape(u.shape[0], 2, 3, -1).flatten(1, 2)

    model = ZOO["vit"].build()
    plain = ZOO["vit"].call(model, pixels(), None)
    insert(model, "after_ffn", layer=lambda dim, causal: OverThePlane())
    assert torch.equal(ZOO["vit"].call(model, pixels(), None), plain)


def test_refuses_what_is_no_factory(bert):
    with pytest.raises(ValueError, match=r"`layer`.*adaptive, multiscal"):
        insert(bert, "after_ffn", layer="difusion")
    with pytest.raises(ValueError, match="one object cannot serve several places"):
        insert(bert, "after_ffn", layer=Diffusion(DIM))
    with pytest.raises(ValueError, match=r"must build a torch\.nn\.Module, got int"):
        insert(bert, "after_ffn", layer=lambda dim, causal: dim)
    with pytest.raises(ValueError, match=r"`initial_ratio`.*where `layer` is a fun"):
        insert(bert, "after_ffn", layer=Diffusion, initial_ratio=0.1)
    one = Diffusion(DIM)
    with pytest.raises(ValueError, match=r"`layer`.*got one tw"):
        insert(bert, "after_ffn", layer=lambda dim, causal: one)


def test_refuses_unknown_positions_routes_and_blocks(bert):
    with pytest.raises(ValueError, match="did you mean 'after_ffn'"):
        insert(bert, "after_ffm")
    with pytest.raises(ValueError, match=r"`route`.*branch, stream"):
        insert(bert, "after_ffn", route="river")
    with pytest.raises(ValueError, match=r"must lie in 0 to 1 \(the model has 2\), got 2"):
        insert(bert, "after_ffn", blocks=[0, 2])
    with pytest.raises(ValueError, match=r"must.*once, got 1 twice"):
        insert(bert, "after_ffn", blocks=[1, 1])
    with pytest.raises(ValueError, match=r"must.*of 0 to 1"):
        insert(bert, "after_ffn", blocks=[])
    for position in ("after_ffn", "after_embedding"):
        with pytest.raises(ValueError, match=r"list.*numbers, got 1; write blocks=\[1\]"):
            insert(bert, position, blocks=1)
    with pytest.raises(ValueError, match=r"`blocks`.*at 'after_embedding'"):
        insert(bert, "after_embedding", blocks=[0])


def test_refuses_to_insert_twice_at_the_same_place(bert):
    insert(bert, "after_ffn", blocks=[0])
    insert(bert, "after_ffn", blocks=[1])
    with pytest.raises(ValueError, match="holds 'after_ffn_branch_0' already; remove"):
        insert(bert, "after_ffn")


def test_refuses_to_insert_through_a_part_of_the_model():
    model = ZOO["gpt2"].build()
    insert(model, "after_ffn")
    with pytest.raises(ValueError, match=r"the.*made into"):
        insert(model.transformer, "after_attention")


def test_refuses_to_remove_twice(bert):
    inserted = insert(bert, "after_ffn")
    inserted.remove()
    with pytest.raises(ValueError, match="'after_ffn' was removed already"):
        inserted.remove()


def test_refuses_weights_of_another_size_place_or_none(bert, tmp_path):
    path = tmp_path / "added.safetensors"
    insert(bert, "after_ffn").save(path)
    import transformers

    wide = transformers.BertModel(transformers.BertConfig(**BERT | {"hidden_size": 32}))
    with pytest.raises(ValueError, match=r"of shape \[32\], got \[16\];.*saved from"):
        insert(wide, "after_ffn").load(path)
    with pytest.raises(ValueError, match=r"insert.*same position"):
        insert(bert, "after_attention").load(path)
    bert = ZOO["gpt2"].build()
    insert(bert, "after_ffn", initial_ratio=0.2).save(path)
    wanted = "ratio up to 0.5 by projection, got those of .* by sigmoid: the same numbers would"
    with pytest.raises(ValueError, match=wanted):
        insert(ZOO["gpt2"].build(), "after_ffn").load(path)
    with pytest.raises(ValueError, match=r"must hold weights of TokenShift; .* got those of Diff"):
        insert(ZOO["gpt2"].build(), "after_ffn", layer="token_shift", initial_ratio=0.2).load(path)
    with pytest.raises(FileNotFoundError, match="must be a file that save"):
        insert(bert, "before_norm").load(tmp_path / "absent")


def test_refuses_an_unknown_family_and_says_how_to_describe_it():
    with pytest.raises(ValueError, match=r"got Linear;.*its block"):
        insert(nn.Linear(2, 2), "after_ffn")
    wrong = Family(
        name="wrong",
        norm=NormOrder.PRE,
        norms=("norm_a", "norm_b"),
        attention=out_of("attn"),
        ffn=out_of("mlp"),
        width="attn.to_q",
    )
    with pytest.raises(ValueError, match=r"finds.*the modul"):
        insert(nn.Linear(2, 2), "after_ffn", family=wrong)


class Holder(nn.Module):
    def __init__(self, *held):
        super().__init__()
        self.held = nn.ModuleList(held)


@pytest.mark.parametrize("kind", [nn.Sequential, nn.ModuleList])
def test_refuses_a_container_that_would_run_what_it_holds(kind):
    layer = ZOO["torch_layer"].build()
    held = kind(layer) if kind is nn.Sequential else kind([layer])
    with pytest.raises(ValueError, match=f"hold a further submodule, got a {kind.__name__}"):
        insert(held, "after_ffn")


def test_refuses_a_model_of_two_families_or_of_both_kinds():
    both = nn.Transformer(DIM, 4, 1, 1, 2 * DIM, batch_first=True)
    with pytest.raises(ValueError, match=r"must.*family, got 1 of torch\.nn"):
        insert(both, "after_ffn")
    decoder = ZOO["bert"].build()
    for layer in decoder.encoder.layer:
        layer.is_decoder = True
    with pytest.raises(ValueError, match="got blocks of both kinds"):
        insert(Holder(ZOO["bert"].build(), decoder), "after_ffn")


def test_refuses_a_block_that_runs_its_feed_forward_in_pieces():
    import transformers

    settings = BERT | {"chunk_size_feed_forward": 2}
    model = transformers.BertModel(transformers.BertConfig(**settings))
    with pytest.raises(ValueError, match="`chunk_size_feed_forward` must be off"):
        insert(model, "after_ffn")


def test_refuses_a_causal_plane_and_a_vision_part_without_patches():
    model = ZOO["vit"].build()
    with pytest.raises(ValueError, match=r"the.*no order"):
        insert(model, "after_ffn", causal=True)
    with pytest.raises(ValueError, match=r"must.*vision Transformer"):
        insert(Holder(model.layers), "after_ffn")


@pytest.mark.parametrize("name", ["cu_seqlens", "cu_seq_lens_q"])
def test_ends_of_packed_sequences_reach_the_layers_as_walls(name):
    model, seen = ZOO["llama"].build(), []
    inserted = insert(model, "after_ffn", initial_ratio=0.1)
    for layer in inserted.layers.values():
        layer.register_forward_hook(
            lambda layer, args, named, out: seen.append(named.get("segments")), with_kwargs=True
        )
    ends = torch.tensor([0, 3, 7], dtype=torch.int32)
    model(tokens()[:1], use_cache=False, **{name: ends})
    assert [each.tolist() for each in seen] == [[[0, 0, 0, 1, 1, 1, 1]]] * 2


@pytest.mark.parametrize(("kind", "prefix"), [("DeiT", 2), ("IJepa", 0), ("ViT", 1)])
def test_patches_stand_behind_as_many_tokens_as_the_model_has(kind, prefix):
    import transformers

    shape = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = getattr(transformers, f"{kind}Config")(
        **shape, intermediate_size=16, image_size=32, patch_size=8
    )
    model = getattr(transformers, f"{kind}Model")(config).eval()
    pixels = torch.randn(2, 3, 32, 32)
    plain = model(pixels).last_hidden_state
    assert plain.shape[1] == 16 + prefix
    insert(model, "between_blocks", initial_ratio=0.1)
    moved = model(pixels).last_hidden_state - plain
    assert bool(moved[:, prefix:].any())
