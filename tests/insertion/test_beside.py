"""Insertion beside other people's machinery: LoRA by peft, FSDP2 over two processes, names."""

import subprocess
import sys
import textwrap

import pytest
import torch
from torch import nn

import depthpde as dp


def make_encoder():
    torch.manual_seed(0)
    block = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
    return nn.TransformerEncoder(block, 2, enable_nested_tensor=False).eval()


@pytest.fixture
def bert():
    transformers = pytest.importorskip("transformers", reason="needs the extra hf")
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=50, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=16, hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    return transformers.BertForSequenceClassification(config).eval()


def move(inserted, by=0.1):
    with torch.no_grad():
        for each in inserted.parameters():
            each.add_(by)


@pytest.mark.parametrize("first", ["insertion", "adapter"])
def test_layers_and_lora_train_together_and_leave_apart(bert, first, tmp_path):
    peft = pytest.importorskip("peft", reason="peft is not installed")
    settings = peft.LoraConfig(
        r=2, target_modules=["query", "value"], init_lora_weights="gaussian", task_type="SEQ_CLS"
    )
    tokens = torch.randint(1, 50, (4, 8), generator=torch.Generator().manual_seed(1))
    labels = torch.tensor([0, 1, 0, 1])
    before = bert(input_ids=tokens).logits.detach()
    if first == "insertion":
        inserted = dp.insert(bert, "after_embedding")
        model = peft.get_peft_model(bert, settings)
    else:
        model = peft.get_peft_model(bert, settings)
        inserted = dp.insert(bert, "after_embedding")
    assert torch.equal(model(input_ids=tokens).logits, before)  # both are the identity at first
    for each in inserted.parameters():
        each.requires_grad_(True)  # peft freezes whatever it does not know
    trained = {name for name, each in model.named_parameters() if each.requires_grad}
    assert sum("depthpde_insertion" in name for name in trained) == len(inserted.parameters())
    assert any("lora_A" in name for name in trained)
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.5)
    for _ in range(3):
        model(input_ids=tokens, labels=labels).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    both = model(input_ids=tokens).logits
    assert inserted.ratios["after_embedding_stream_0"].abs().max() > 0
    folder = inserted.save_pretrained(tmp_path)
    inserted.remove()
    alone = model(input_ids=tokens).logits
    assert not torch.allclose(alone, both)
    dp.insert_from(bert, folder)
    assert torch.equal(model(input_ids=tokens).logits, both)
    with model.disable_adapter():  # ours stays where LoRA is switched off
        assert not torch.allclose(model(input_ids=tokens).logits, both)


def test_named_insertions_stand_side_by_side_and_act_one_by_one(tmp_path):
    model, u = make_encoder(), torch.randn(2, 5, 16)
    plain = model(u)
    first = dp.insert(model, "after_ffn", name="narrow", initial_ratio=0.1)
    only_first = model(u)
    second = dp.insert(model, "after_ffn", name="wide", layer="multiscale")
    move(second)
    both = model(u)
    assert next(iter(first.layers)) == "narrow_after_ffn_branch_0"
    assert str(second).startswith("wide: MultiscaleDiffusion")
    with second.disabled():
        assert torch.equal(model(u), only_first)
        with first.disabled():
            assert torch.equal(model(u), plain)
    folders = [each.save_pretrained(tmp_path / each.name) for each in (first, second)]
    first.remove()
    second.remove()
    assert torch.equal(model(u), plain)
    again = [dp.insert_from(model, folder) for folder in folders]
    assert torch.equal(model(u), both)
    assert [each.name for each in again] == ["narrow", "wide"]


def test_a_second_one_without_a_name_is_told_to_take_one():
    model = make_encoder()
    dp.insert(model, "after_ffn")
    with pytest.raises(ValueError, match=r"holds 'after_ffn_branch_0' already; .* name="):
        dp.insert(model, "after_ffn")
    with pytest.raises(ValueError, match=r"`name` must be letters, digits .*, got 'a.b'"):
        dp.insert(model, "after_ffn", name="a.b")


FSDP = textwrap.dedent("""
    import sys, torch, torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.nn import functional as F
    import depthpde as dp

    rank, store = int(sys.argv[1]), sys.argv[2]
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)

    def train(model, inserted, rows):
        optimizer = torch.optim.SGD([
            {"params": [p for n, p in model.named_parameters() if "depthpde" not in n], "lr": 0.05},
            {"params": [p for n, p in model.named_parameters() if "depthpde" in n], "lr": 5.0},
        ])
        for _ in range(3):
            F.mse_loss(model(u[rows]), y[rows]).backward()
            optimizer.step()
            optimizer.zero_grad()

    def make():
        torch.manual_seed(0)
        block = torch.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        model = torch.nn.TransformerEncoder(block, 2, enable_nested_tensor=False)
        return model, dp.insert(model, "after_ffn", initial_ratio=0.05)

    gen = torch.Generator().manual_seed(1)
    u, y = torch.randn(4, 6, 16, generator=gen), torch.randn(4, 6, 16, generator=gen)
    alone, own = make()
    train(alone, own, slice(0, 4))

    model, inserted = make()
    mesh = init_device_mesh("cpu", (2,))
    for block in model.layers:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    train(model, inserted, slice(2 * rank, 2 * rank + 2))  # each half of the batch
    sharded = [each for each in model.parameters() if type(each).__name__ == "DTensor"]
    assert len(sharded) == len(list(model.parameters()))
    weights = {name: each.full_tensor() for name, each in model.state_dict().items()}
    for name, wanted in alone.state_dict().items():
        torch.testing.assert_close(weights[name], wanted, rtol=1e-5, atol=1e-6)
    moved = [name for name in weights if "depthpde_insertion" in name]
    assert moved and all(weights[n].std() > 0 for n in moved), moved
    with inserted.disabled():
        model(u)
    inserted.save(f"{store}-{rank}.safetensors")  # gathered: whole in every process
    own.load(f"{store}-{rank}.safetensors")
    for name, wanted in alone.state_dict().items():
        torch.testing.assert_close(weights[name], wanted, rtol=1e-5, atol=1e-6)
    try:
        inserted.load(f"{store}-{rank}.safetensors")
    except ValueError as error:
        assert "load before fully_shard" in str(error)
    else:
        raise AssertionError("sharded weights were loaded")
    print("status", inserted.status().splitlines()[0])
    print("ok", rank)
    dist.destroy_process_group()
""")


@pytest.mark.drill
def test_fsdp_over_two_processes_trains_what_one_process_trains(tmp_path):
    calls = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", FSDP, str(rank), str(tmp_path / "store")],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for rank in (0, 1)
    ]  # fmt: skip
    printed = [call.communicate(timeout=240) for call in calls]
    for rank, (out, errors) in enumerate(printed):
        assert f"ok {rank}" in out, errors
