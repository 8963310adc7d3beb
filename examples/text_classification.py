"""Hugging Face: BERT with a layer put in, trained by Trainer, watched: whose chapter is a text?"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from pydoc_data.topics import topics

import torch
from matplotlib.figure import Figure
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

import depthpde as dp

OUT, PIECE = Path("out/gallery/text_classification"), 64
CHAPTERS = ("typesseq", "formatstrings", "debugger", "specialnames")


def read_pieces() -> list[dict[str, torch.Tensor]]:
    """Return pieces of 64 bytes, and the number of their chapter."""
    found = []
    for label, name in enumerate(CHAPTERS):
        words = torch.tensor(list(topics[name].encode()))
        rows = words[: len(words) // PIECE * PIECE].view(-1, PIECE)
        found += [{"input_ids": row, "labels": torch.tensor(label)} for row in rows]
    return found


def main(*, quick: bool = False) -> None:
    """Train, print what was inserted and learned, draw the doctor's history."""
    torch.manual_seed(0)
    size = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = BertConfig(vocab_size=256, intermediate_size=128, num_labels=len(CHAPTERS), **size)
    model = BertForSequenceClassification(config)
    inserted = dp.insert(model, "after_embedding")
    print(inserted)
    arguments = TrainingArguments(
        OUT, max_steps=4 if quick else 200, per_device_train_batch_size=16, learning_rate=1e-3,
        use_cpu=True, report_to=[], save_strategy="no", logging_steps=50, disable_tqdm=True,
    )  # fmt: skip
    (OUT / "doctor.jsonl").unlink(missing_ok=True)  # of a run before this one
    watch = dp.DoctorCallback(every=2 if quick else 20, budget=None)
    Trainer(model, arguments, train_dataset=read_pieces(), callbacks=[watch]).train()
    print(inserted.status())
    lines = map(json.loads, (OUT / "doctor.jsonl").read_text().splitlines())
    looks = [line for line in lines if "values" in line]
    left, right = Figure(figsize=(9, 3.6), layout="constrained").subplots(1, 2)
    for name, line in (("representational drift", "o-"), ("rank collapse", "s--")):
        values = [look["values"][name] for look in looks]
        left.plot([look["update"] for look in looks], values, line, label=name)
    left.set(xlabel="update", ylabel="its number; low is ill", title="the doctor's looks")
    left.legend()
    inserted.plot(right)
    left.figure.savefig(OUT.with_suffix(".png"), dpi=100)


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
