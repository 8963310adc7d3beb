"""What a finished run's depth-dynamics look like: measured once, kept beside its record.

RUNS/ID/dynamics.json    the model at its start and at its end, layer by layer, as plain numbers
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from depthpde.data.batching import Batch, Batches
from depthpde.data.reader import Split, read_split
from depthpde.data.task import TaskKind
from depthpde.files import write_json
from depthpde.layers.pooling import pool
from depthpde.measures.drift import centred_cosine, cosine, linear_cka
from depthpde.measures.gradient import stream_norms
from depthpde.measures.information import LEAST, information_plane
from depthpde.measures.lyapunov import lyapunov_spectrum
from depthpde.measures.rank import rank_residual, token_cosine
from depthpde.measures.tokens import mean_over_batch
from depthpde.models.classifier import Classifier
from depthpde.models.language import LanguageModel
from depthpde.models.pretrained import CONFIG, Pretrained
from depthpde.models.vision import VisionTransformer
from depthpde.papers.experiment import DYNAMICS
from depthpde.records.record import Record
from depthpde.runs.execute import MODEL, ensure_prepared
from depthpde.runs.run import RunConfig
from depthpde.shapes import Field, Mask
from depthpde.simulator.learned import LanguageSimulator, Simulator
from depthpde.simulator.transcribe import follow
from depthpde.sweeps.executor import Folders
from depthpde.threads import one_thread
from depthpde.training.evaluate import cross_entropy, model_inputs, predict

FORMAT = 1
STRANGER = 100_000
"""Added to a run's seed for a network that has nothing to do with it."""

MODELS: dict[str, type[Pretrained]] = {
    each.__name__: each
    for each in (Classifier, LanguageModel, LanguageSimulator, Simulator, VisionTransformer)
}
"""Every model that a run can end with."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Observation:
    """How much of the test split is looked at."""

    examples: int = 32
    """For the measures of fields."""
    informed: int = 512
    """For information, which needs many; below 50 it is left out."""
    tangents: int = 4
    """Examples for the Lyapunov exponent; 0 leaves it out."""
    slices: int = 32
    """Random directions of the sliced information; 0 leaves it out."""


def observe(record: Record, folders: Folders, look: Observation) -> dict[str, Any]:
    """Measure a finished run at its start and at its end, or read what was measured.

    Args:
        record: The run.
        folders: Where its data lie.
        look: How much to look at.
    """
    path = record.folder / DYNAMICS
    asked = {"format": FORMAT, "look": [look.examples, look.informed, look.tangents]}
    if path.is_file():
        stored: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if {key: stored.get(key) for key in asked} == asked:
            return stored
    run = RunConfig.from_dict(record.config)
    split = split_of(run, folders)
    start = run.build()
    assert isinstance(start, Pretrained), "every run builds one of ours"
    with one_thread():
        found = asked | {
            "start": measure(start.eval(), split, look),
            "end": measure(trained_model(record), split, look),
        }
    write_json(path, found)
    return found


def measure(model: Pretrained, split: Split, look: Observation) -> dict[str, Any] | None:
    """Measure one model layer by layer; None where its numbers are no numbers any more.

    Args:
        model: In evaluation mode.
        split: What it is shown.
        look: How much of it.
    """
    batch = first_batch(split, look.examples)
    path, sites = follow(model, *model_inputs(model, batch))
    fields = list(path.states)
    if not bool(path.states.isfinite().all()):
        return None
    first = fields[0]
    found: dict[str, Any] = {
        "cosine": by_layer(fields, lambda u: cosine(first, u, sites)),
        "centred": by_layer(fields, lambda u: centred_cosine(first, u, sites)),
        "cka": by_layer(fields, lambda u: linear_cka(first, u, sites)),
        "rank": by_layer(fields, lambda u: rank_residual(u, sites)),
        "token": by_layer(fields, lambda u: token_cosine(u, sites)),
        "size": by_layer(fields, lambda u: u.square().mean().sqrt()),
        "gradient": plain(gradients_by_layer(model, batch, sites)),
        "lyapunov": None,
        "information": None,
    }
    if look.tangents:
        some = slice(0, look.tangents)
        mask = None if sites is None else sites[some]
        maps = [_map(block, mask) for block in model.encoder.blocks]
        spectrum = lyapunov_spectrum(maps, first[some], exponents=1, rounds=3, valid_mask=mask)
        found["lyapunov"] = float(spectrum.largest.mean())
    if look.informed >= LEAST and split.kind is not TaskKind.LANGUAGE:
        found["information"] = _information(model, split, look.informed)
    return found


def gradients_by_layer(model: Pretrained, batch: Batch, sites: Mask | None) -> Tensor:
    """Measure the gradient of the loss on the stream before the first block and after each.

    ‖∂loss/∂u_l‖,    [depths]
    """
    fields: list[Field] = []

    def keep(u: Field) -> Field:
        u.retain_grad()
        fields.append(u)
        return u

    blocks = list(model.encoder.blocks)
    hooks = [blocks[0].register_forward_pre_hook(lambda block, inputs: _first(keep, inputs))]
    hooks += [block.register_forward_hook(lambda block, i, out: keep(out)) for block in blocks]
    try:
        loss = cross_entropy(predict(model, batch), batch.labels)
        loss.backward()  # type: ignore[no-untyped-call]
    finally:
        for hook in hooks:
            hook.remove()
        model.zero_grad(set_to_none=True)
    return stream_norms([u.grad for u in fields if u.grad is not None], sites)


def trained_model(record: Record) -> Pretrained:
    """Return the model that a run ended with, in evaluation mode."""
    folder = record.folder / MODEL
    if not (folder / CONFIG).is_file():
        raise FileNotFoundError(
            f"{folder} must hold the weights that run {record.id} ended with; results that were "
            "copied without them cannot be measured: copy them too, or remove the run's folder"
        )
    name = json.loads((folder / CONFIG).read_text(encoding="utf-8"))["model"]
    return MODELS[name].from_pretrained(folder)


def other_seed(run: RunConfig) -> Pretrained:
    """Return an untrained network of the same config that shares nothing with a run."""
    model = replace(run, seed=run.seed + STRANGER).build()
    assert isinstance(model, Pretrained), "every run builds one of ours"
    return model.eval()


def split_of(run: RunConfig, folders: Folders) -> Split:
    """Return the test split of a run's task."""
    return read_split(ensure_prepared(run, folders.data, folders.prepared), "test")


def first_batch(split: Split, examples: int) -> Batch:
    """Return the same examples of a split every time."""
    batches = Batches(split, examples)
    return batches.fill(batches.plan(0)[0])


def by_layer(fields: Sequence[Field], compare: Callable[[Field], Tensor]) -> list[float | None]:
    """Measure every field, averaged over examples; None where nothing can be said."""
    return plain(torch.tensor([mean_over_batch(compare(u)) for u in fields]))


def plain(values: Tensor) -> list[float | None]:
    """Return numbers for JSON; None for what is none."""
    return [each if math.isfinite(each) else None for each in values.double().tolist()]


def pooled_states(model: Pretrained, split: Split, examples: int) -> tuple[list[Tensor], Tensor]:
    """Return the mean over sites of every depth's field, each [n, dim], and the labels, [n].

    Args:
        model: In evaluation mode.
        split: What it is shown.
        examples: How many of it, in whole batches of 64.
    """
    batches = Batches(split, 64)
    states: list[Tensor] = []
    labels: list[Tensor] = []
    for part in batches.plan(0)[: math.ceil(examples / 64)]:
        batch = batches.fill(part)
        path, sites = follow(model, *model_inputs(model, batch))
        states.append(torch.stack([pool(u, "mean", sites) for u in path.states]))
        labels.append(batch.labels)
    return list(torch.cat(states, dim=1)), torch.cat(labels)


def _first(keep: Callable[[Field], Field], inputs: Any) -> Any:
    return (keep(inputs[0]), *inputs[1:])


def _map(block: torch.nn.Module, mask: Mask | None) -> Callable[[Field], Field]:
    return lambda u: block(u, mask)


def _information(model: Pretrained, split: Split, examples: int) -> list[dict[str, Any]] | None:
    """Place every layer's pooled field in the information plane, without slices.

    Those have a file of their own, so that records written before can have them too.
    """
    states, labels = pooled_states(model, split, examples)
    if len(labels) < LEAST:
        return None
    return [
        {
            "about_input": point.about_input.value,
            "about_label": point.about_label.value,
            "input_unreliable": point.about_input.unreliable,
            "label_unreliable": point.about_label.unreliable,
        }
        for point in information_plane(states, labels, slices=0)
    ]
