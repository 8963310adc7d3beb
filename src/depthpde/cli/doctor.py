"""``depthpde doctor``: are the depth-dynamics of a model healthy?"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from depthpde.cli.subject import (
    Subject,
    add_options,
    from_checkpoint,
    from_huggingface,
    from_python,
    most_sites,
    random_tokens,
    sentences,
)

if TYPE_CHECKING:
    from torch import nn

SUMMARY = "measure a model along its depth and say in plain words whether it is healthy"
EXAMPLES = """examples:
  depthpde doctor --hf models/my-bert --text sentences.txt
  depthpde doctor --checkpoint runs/0123456789abcdef
  depthpde doctor --python mymodels:build --json > doctor.json
  depthpde doctor --hf models/my-bert-now --reference models/my-bert-before
  depthpde doctor --compare before.json after.json

--reference names a healthy model in the way the model itself is named; a second page compares both.
--python names a function without arguments that returns the model, or (model, inputs).
--checkpoint takes its batch from the run's task where that is prepared, so gradients are measured.
exit code: 0 if nothing is ill (with --compare: got worse), 1 if something is, 2 for wrong input,
3 if the model fails
"""
SEQUENCES = 32
"""Sequences of a batch that is drawn or read from a prepared task."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    source = add_options(parser, checkpoint=True)
    source.add_argument(
        "--compare", metavar=("BEFORE", "AFTER"), nargs=2, type=Path,
        help="two files that --json wrote: what got worse, what got better",
    )  # fmt: skip
    parser.add_argument(
        "--reference", metavar="MODEL", help="a healthy model, such as the one before a change"
    )
    parser.add_argument("--text", metavar="FILE", type=Path, help="sentences for --hf, one a line")
    parser.add_argument(
        "--length", type=int, default=32, help="tokens of a random input (default: 32)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of a random input (default: 0)")
    parser.add_argument(
        "--prepared", metavar="DIR", type=Path, help="folder of prepared tasks, for --checkpoint"
    )
    parser.add_argument(
        "--thresholds", metavar="FILE", type=Path, help="thresholds instead of the calibrated ones"
    )
    parser.add_argument(
        "--out",
        metavar="FILE",
        type=Path,
        default=Path("out/doctor.html"),
        help="where the page goes (default: out/doctor.html)",
    )
    parser.add_argument("--json", action="store_true", help="print everything as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Examine the model, print the verdicts, write the page.

    Returns:
        0 if nothing is ill, 1 if something is.
    """
    from depthpde.doctor.comparison import compare_diagnoses
    from depthpde.doctor.diagnosis import diagnose
    from depthpde.doctor.thresholds import Grade, Thresholds
    from depthpde.errors import check_positive

    check_positive("--length", arguments.length)
    if arguments.reference is not None and arguments.compare is not None:
        raise ValueError("`--reference` must go with a model; --compare takes two JSON files alone")
    if arguments.text is not None and arguments.hf is None:
        raise ValueError("`--text` must go with --hf, whose tokenizer reads it")
    if arguments.out.is_dir():
        raise ValueError(f"`--out` must be a file for the page, got the folder {arguments.out}")
    if arguments.compare is not None:
        return _compare(arguments)
    thresholds = Thresholds.read(arguments.thresholds)
    subject, reference = _subject(arguments), _reference(arguments)
    diagnosis = diagnose(
        subject.model,
        subject.inputs,
        labels=subject.labels,
        thresholds=thresholds,
        reference=reference,
    )
    if subject.note:  # a note of the measures goes wherever they go
        seen = diagnosis.trajectory
        diagnosis = replace(diagnosis, trajectory=replace(seen, notes=(*seen.notes, subject.note)))
    page = diagnosis.save(arguments.out)
    if arguments.json:
        print(json.dumps(diagnosis.to_dict(), ensure_ascii=False))
    else:
        print(diagnosis)
    print(f"page {page}", file=sys.stderr if arguments.json else sys.stdout)
    if reference is not None:
        known = diagnose(reference, subject.inputs, labels=subject.labels, thresholds=thresholds)
        beside = arguments.out.with_stem(f"{arguments.out.stem}-compared")
        page = compare_diagnoses(known, diagnosis, names=("reference", "model")).save(beside)
        print(f"page {page}", file=sys.stderr if arguments.json else sys.stdout)
    return 1 if diagnosis.grade is Grade.ILL else 0


def _compare(arguments: argparse.Namespace) -> int:
    """Compare two diagnoses that were kept; 1 if something got worse."""
    from depthpde.doctor.comparison import compare_diagnoses
    from depthpde.doctor.diagnosis import Diagnosis

    before, after = (Diagnosis.read(path) for path in arguments.compare)
    compared = compare_diagnoses(before, after)
    page = compared.save(arguments.out)
    print(json.dumps(compared.to_dict(), ensure_ascii=False) if arguments.json else compared)
    print(f"page {page}", file=sys.stderr if arguments.json else sys.stdout)
    return 1 if compared.worse else 0


def _reference(arguments: argparse.Namespace) -> nn.Module | None:
    """Load the reference in the way the model itself is named."""
    if arguments.reference is None:
        return None
    if arguments.python is not None:
        return from_python(arguments.reference)[0]
    folder = Path(arguments.reference)
    if arguments.checkpoint is not None:
        return from_checkpoint(folder)[0]
    return from_huggingface(folder, trust=arguments.trust_remote_code)


def _subject(arguments: argparse.Namespace) -> Subject:
    if arguments.python is not None:
        model, inputs = from_python(arguments.python)
        return Subject(model, inputs) if inputs is not None else _fed_by_chance(model, arguments)
    if arguments.checkpoint is not None:
        model, config = from_checkpoint(arguments.checkpoint)
        return _fed_by_task(model, config, arguments)
    model = from_huggingface(arguments.hf, trust=arguments.trust_remote_code)
    inputs = sentences(arguments.hf, arguments.text)
    return Subject(model, inputs) if inputs is not None else _fed_by_chance(model, arguments)


def _fed_by_chance(model: nn.Module, arguments: argparse.Namespace) -> Subject:
    """Feed random tokens, or random images, and say so."""
    note = "the input is random; a model may behave otherwise on what it was made for"
    images = _images(model)
    if images is not None:
        return Subject(model, images, note=note)
    config: Any = getattr(model, "config", None)
    length = min(arguments.length, most_sites(model) or arguments.length)
    if getattr(config, "plane", None) or getattr(config, "row_length", None):
        length = config.length  # every site has its place on a grid
    first = random_tokens(model, length, arguments.seed, batch=SEQUENCES)
    if getattr(config, "documents", 1) == 1:
        return Subject(model, first, note=note)
    second = random_tokens(model, length, arguments.seed + 1, batch=SEQUENCES)
    return Subject(model, (first, None, second, None), note=note)


def _images(model: nn.Module) -> Any:
    """Draw images for a model that reads them; None for one that does not."""
    import torch

    from depthpde import seeds

    side = _side(model)
    if side is None:
        return None
    return torch.rand(8, *side, generator=seeds.generator(0, "images"))


def _side(model: nn.Module) -> tuple[int, int, int] | None:
    """Read channels, height and width of a model's images; None for one that reads none."""
    config: Any = getattr(model, "config", None)
    if getattr(config, "input", None) == "patch":  # our own
        rows, columns = config.grid
        return config.channels, config.patch * rows, config.patch * columns
    if not hasattr(config, "image_size") or not hasattr(config, "num_channels"):
        return None
    size = config.image_size
    height, width = size if hasattr(size, "__len__") else (size, size)
    return config.num_channels, height, width


def _fed_by_task(
    model: nn.Module, config: dict[str, Any], arguments: argparse.Namespace
) -> Subject:
    """Feed the validation examples of the run's task, where they are prepared."""
    from depthpde.data.batching import Batches
    from depthpde.data.catalog import load
    from depthpde.training.evaluate import model_inputs

    task = config.get("task")
    if not isinstance(task, str):
        return _fed_by_chance(model, arguments)
    try:
        split = load(
            task,
            "validation",
            out=arguments.prepared,
            protocol=config.get("protocol", "strict"),
        )
    except (OSError, ValueError) as error:
        subject = _fed_by_chance(model, arguments)
        return Subject(model, subject.inputs, note=f"{subject.note} ({task}: {error})")
    batch = next(iter(Batches(split, SEQUENCES).once()))
    return Subject(model, model_inputs(model, batch), batch.labels)
