"""probe(model, batch) → Trajectory: look at any Transformer while it works, and change nothing.

    outputs of the probed pass = outputs of the unprobed pass, to the bit

Hooks only: no copy of the model, no other attention implementation, no weight or mode left
different. The equality is checked each time, with torch's fused encoder layers off in both passes
(they cannot be looked into). What could not be measured is listed with its reason.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from depthpde.doctor.activations import Activations, fast_paths_off, watching
from depthpde.doctor.baseline import add_baseline
from depthpde.doctor.depth_profile import DepthProfile
from depthpde.doctor.influence import add_influence
from depthpde.doctor.large import ROWS, TOLERANCE, is_large, shorter
from depthpde.doctor.loss import add_gradients, logits_of
from depthpde.doctor.measurements import GROUPS, ON_REQUEST, Measurements
from depthpde.doctor.model_map import ModelMap, model_map
from depthpde.doctor.single_modules import ModuleWatch
from depthpde.errors import check_flag, check_name, shown
from depthpde.insertion.calling import (
    arguments,
    call_model,
    check_batch,
    check_has_weights,
    quiet,
)
from depthpde.insertion.compiled import check_not_compiled
from depthpde.insertion.family import Family
from depthpde.insertion.layout import FieldLayout
from depthpde.insertion.recorder import Recorder, argument_names
from depthpde.isolation.causality import check_causality
from depthpde.measures import energy
from depthpde.measures.tokens import real_tokens

Batch = Tensor | tuple[Any, ...] | Mapping[str, Any]
Loss = Callable[..., Tensor]
MASSIVE = 100
"""Times the median channel from which on a channel counts as massive."""


def probe(
    model: nn.Module,
    batch: Batch,
    *,
    labels: Tensor | None = None,
    loss: Loss | None = None,
    family: Family | None = None,
    stack: str | None = None,
    groups: Collection[str] = GROUPS,
    baseline: bool = True,
    causality: bool = True,
    check: bool = True,
    light: bool = False,
    modules: bool = False,
) -> DepthProfile:
    """Measure what happens to the field on its way through a model.

    The model runs in eval mode and is left as it was: weights, gradients, modes, random numbers.

    >>> model = dp.Classifier(dp.ModelConfig(dim=16, vocabulary=9, length=12, classes=3))
    >>> profile = dp.probe(model, torch.randint(9, (4, 12)))
    >>> drift = profile["drift.cosine"]

    Args:
        model: One of our models, one of a family that `insertion` knows, or any residual stack.
        batch: What the model is called with: one tensor, or its positional or named arguments.
        labels: The right answers: class of each sequence, or token of each site; for gradients.
            Those of a batch that has ``labels`` are found.
        loss: Takes the output (and the labels, if given) and gives the loss instead.
        family: The description of a family that is not known. Without it the blocks of an
            unknown model are found by running it.
        stack: The module that holds the blocks, where there are several; by default the longest
            stack, and of equals the last (a decoder).
        groups: Which measures: out of drift, rank, energy, attention, coupling, spectrum; and
            lyapunov, which is expensive and off by default.
        baseline: Whether to run a random network of the same shapes beside it.
        causality: Whether to try if the future leaks, in a model that must not let it.
        check: Whether to compare the probed outputs with the unprobed ones.
        light: Leave out what is dear and no verdict needs; try causality once.
        modules: Whether to look at norms and units too: the share of ε in what a norm divides by,
            units that are zero for every token.
    """
    began = time.perf_counter()
    check_not_compiled(model, "probing")
    check_has_weights(model, "probing")
    for name, flag in (("baseline", baseline), ("causality", causality), ("check", check)):
        check_flag(name, flag)
    if isinstance(groups, str) or not isinstance(groups, Collection):
        raise ValueError(f"`groups` must be a list of names, got {shown(groups)}; use ('drift',)")
    for name in groups:
        check_name("groups", name, (*GROUPS, *ON_REQUEST))
    args, named = arguments(batch)
    check_batch(model, (*args, *named.values()), name="batch")
    if labels is None and loss is None and isinstance(named.get("labels"), Tensor):
        labels = named.pop("labels")  # as Hugging Face's collators hand them over
    by_name = dict(zip(argument_names(model), args, strict=False)) | named
    body = model_map(model, family, stack=stack, batch=by_name)
    with_gradients = labels is not None or loss is not None
    if labels is not None and loss is None and takes_labels(model):
        named = {**named, "labels": labels}
    layers = energy.diffusion_layers(model)
    with ExitStack() as context:
        context.callback(fast_paths_off())
        context.enter_context(quiet(model))
        large = is_large(model)
        plain = _tensors(call_model(model, args, named)) if check and not large else None
        with Recorder() as recorder, watching(body, layers=layers) as activations:
            watch = ModuleWatch(body, recorder) if modules else None
            output = call_model(model, args, named)
        _check_seen(body, activations)
        faithful = same_outputs(plain, output) if plain is not None else None
        facts = _facts(activations, args, named) | _of_output(output, activations.valid_mask)
        del plain, output  # logits of a large vocabulary: measures need them no more
        if check and large:
            faithful = _repeats_few(body, activations, args, named)
        measurements = Measurements(body, activations, light=light).take(groups)
        if watch is not None:
            facts |= watch.facts()
            measurements.series |= watch.series()
            measurements.missing |= {"modules": watch.failed} if watch.failed else {}
        if "energy.dirichlet" in measurements.series:
            facts["energy_rises"] = energy.rises(measurements.series["energy.dirichlet"].finite())
        if layers and "coupling" in groups:
            run = partial(call_model, model, args, named)
            facts |= (
                measurements.attempt(
                    "coupling.moved", partial(add_influence, measurements, layers, run)
                )
                or {}
            )
        rows = None
        if with_gradients:
            activations.forget()
            facts["loss"], rows = add_gradients(measurements, args, named, labels, loss)
        if baseline:
            measurements.attempt(
                "baseline", partial(add_baseline, measurements, args, named, groups)
            )
        if causality:
            _add_leak(measurements, facts, args, named, trials=1 if light else 2 if large else 5,
                      tolerance=TOLERANCE if large else 0.0)  # fmt: skip
    if not with_gradients:
        measurements.missing["gradient"] = "no loss given: pass labels= or a loss function"
    return _trajectory(measurements, facts, faithful, rows, began)


def takes_labels(model: nn.Module) -> bool:
    """Tell whether a model takes labels and gives its own loss, as Hugging Face's do."""
    return "labels" in inspect.signature(model.forward).parameters


def same_outputs(first: Any, second: Any) -> bool | None:
    """Tell whether two outputs are equal to the bit; None if there is no tensor to compare."""
    ours, theirs = list(_tensors(first)), list(_tensors(second))
    if not ours:
        return None
    if len(ours) != len(theirs):
        return False
    pairs = zip(ours, theirs, strict=True)
    return all(torch.equal(torch.nan_to_num(a), torch.nan_to_num(b)) for a, b in pairs)


def _tensors(output: Any) -> list[Tensor]:
    if isinstance(output, Tensor):
        return [output.detach()]
    if isinstance(output, Mapping):
        output = list(output.values())
    if isinstance(output, tuple | list):
        return [tensor for each in output for tensor in _tensors(each)]
    return []


def _check_seen(body: ModelMap, activations: Activations) -> None:
    if len(activations.stream) != len(body.blocks) + 1:
        raise ValueError(
            f"`model` must run its {len(body.blocks)} blocks when it is called, but "
            f"{len(activations.stream)} of {len(body.blocks) + 1} depths were seen; pass the "
            "part that runs, such as model.encoder, or describe it with family=…"
        )
    mask = activations.valid_mask
    if mask is not None and not mask.any():
        raise ValueError("`batch` must hold at least one real token, got padding alone")


def _facts(
    activations: Activations, args: tuple[Any, ...], named: dict[str, Any]
) -> dict[str, Any]:
    kind = activations.stream[0].dtype
    facts: dict[str, Any] = {
        "dim": activations.stream[0].shape[2],
        "dtype": str(kind).removeprefix("torch."),
        "format_max": torch.finfo(kind).max,
    }
    mask = activations.valid_mask
    middle = real_tokens(activations.stream[len(activations.stream) // 2], mask).abs().amax(dim=0)
    facts["massive_channels"] = int((middle > MASSIVE * middle.median()).sum())
    for depth, u in sorted(activations.stream.items()):
        real = u if mask is None else u[mask]
        if not real.isfinite().all():
            facts["not_finite"] = depth
            break
    given = [each for name, each in named.items() if name not in ("labels", "position_ids")]
    facts["constant_input"] = _is_constant((*args, *given), mask)
    return facts


def _of_output(output: Any, mask: Tensor | None) -> dict[str, Any]:
    """Measure the size of the logits and how much they differ between inputs."""
    logits = logits_of(output)
    if logits is None or not logits.is_floating_point():
        return {}
    logits = logits.detach().float()
    if mask is not None and logits.shape[:2] == mask.shape:
        logits = logits[mask]
    rows = logits.flatten(0, -2)
    size = float(rows.square().mean().sqrt())
    spread = float((rows - rows.mean(dim=0)).square_().mean().sqrt())
    headed = isinstance(output, Tensor) or isinstance(getattr(output, "logits", None), Tensor)
    return {
        "logits": {
            "size": size,
            "spread": spread / size if size > 0 else 0.0,
            "width": rows.shape[-1] if headed else None,
        }
    }


def _is_constant(values: Iterable[Any], mask: Tensor | None) -> bool:
    """Tell whether every sequence of the input is one token again and again."""
    fields = [v for v in values if isinstance(v, Tensor) and v.ndim >= 2 and v.dtype != torch.bool]
    for field in fields:
        if field.ndim > 3:  # images: sites are the pixels
            field = field.flatten(2).transpose(1, 2)
        rows = field if field.ndim == 3 else field[..., None]
        same = (rows == rows[:, :1]).all(dim=2)
        if mask is not None and mask.shape == same.shape:
            same = same | ~mask
        if not same.all():
            return False
    return bool(fields)


def _few_rows(
    body: ModelMap, activations: Activations, args: tuple[Any, ...], named: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Give a call of two rows, without labels; of a few sites too, if the model is large."""
    batch, length = activations.stream[0].shape[:2]
    first = body.layout() is not FieldLayout.LBC

    def few(value: Any) -> Any:
        rows = isinstance(value, Tensor) and value.ndim > 0 and value.shape[0] == batch
        value = value[:ROWS] if rows and first and batch != length else value
        return shorter(value) if first and is_large(body.model) else value

    return tuple(map(few, args)), {
        name: few(each) for name, each in named.items() if name != "labels"
    }


def _repeats_few(
    body: ModelMap, activations: Activations, args: tuple[Any, ...], named: dict[str, Any]
) -> bool | None:
    """Tell whether a few rows come out the same with hooks and without."""
    args, named = _few_rows(body, activations, args, named)
    plain = call_model(body.model, args, named)
    with watching(body):
        probed = call_model(body.model, args, named)
    return same_outputs(plain, probed)


def _add_leak(
    measurements: Measurements,
    facts: dict[str, Any],
    args: tuple[Any, ...],
    named: dict[str, Any],
    trials: int,
    tolerance: float,
) -> None:
    """Try whether the future leaks; where nothing is declared, find out which it is."""
    body = measurements.model_map
    if body.causal is False:
        return
    few, some = _few_rows(body, measurements.activations, args, named)
    axis = 0 if body.layout() is FieldLayout.LBC else 1
    try:
        report = check_causality(
            body.model, few or some, length_axis=axis, trials=trials, tolerance=tolerance
        )
    except ValueError as error:
        measurements.missing["causality"] = str(error)
        return
    facts["found_causal"] = not report.leaks
    if body.causal is None and report.leaks:
        return
    facts["leak"] = None if report.leak is None else str(report)
    facts["leak_module"] = "" if report.leak is None else report.leak.module
    facts["causality"] = str(report)


def _trajectory(
    measurements: Measurements,
    facts: dict[str, Any],
    faithful: bool | None,
    rows: int | None,
    began: float,
) -> DepthProfile:
    body, activations = measurements.model_map, measurements.activations
    batch, length = activations.stream[0].shape[:2]
    mask = activations.valid_mask
    tokens = batch * length if mask is None else int(mask.sum())
    alone = 0 if mask is None else int((~mask.any(dim=1)).sum())
    notes = []
    if body.others:
        notes.append(
            f"blocks of {body.stack!r} were measured; stack= chooses others: "
            + ", ".join(map(repr, body.others))
        )
    if alone:
        notes.append(f"{alone} of {batch} sequences are padding alone and were left out")
    entropies = measurements.series.get("attention.entropy")
    looked = activations.inside.get(0, {}).get("query")
    if entropies is not None and isinstance(looked, Tensor) and looked.shape[0] < batch:
        notes.append(f"attention was measured on {looked.shape[0]} of {batch} sequences")
    if rows is not None:
        notes.append(f"gradients were measured on {rows} of {batch} sequences")
    if faithful is not None:
        facts["repeats"] = faithful
    if faithful is None:
        measurements.missing["self-check"] = (
            "the model's output holds no tensor, or none was requested"
        )
    if faithful is False:
        notes.append(
            "the probed outputs differ from the unprobed: the model does not repeat itself"
        )
    if body.causal is None and facts.get("found_causal") is False:
        notes.append(
            "a site sees its future, and the family does not forbid it; if it must "
            "not, this is a leak: set causal=True in its description"
        )
    return DepthProfile(
        model=type(body.model).__name__,
        family=body.family.name,
        blocks=len(body.blocks),
        parameters=sum(each.numel() for each in body.model.parameters()),
        sequences=batch - alone,
        tokens=tokens,
        causal=bool(facts.get("found_causal", False) if body.causal is None else body.causal),
        seconds=time.perf_counter() - began,
        faithful=faithful,
        series=measurements.series,
        missing=measurements.missing,
        notes=tuple(notes),
        facts=facts,
    )
