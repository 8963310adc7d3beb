"""What do the positions and layers cost in time, memory and parameters, by length?

Every ratio is a median of interleaved pairs: with, without, with, without … so that a noisy
neighbour on the machine hits both alike.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from depthpde.errors import check_one_of, check_positive
from depthpde.models.classifier import Classifier
from depthpde.models.config import ModelConfig
from depthpde.papers.placement import CONTROLS, positions
from depthpde.records.findings import Findings, FindingVerdict, JudgedClaim, check_scale
from depthpde.sweeps.scale import Scale

NAME = "efficiency"
QUESTION = "What do the positions and layers cost in time, memory and parameters, by length?"
SMALL = 1.10
"""A ratio up to this is called a small overhead."""
LENGTHS = {Scale.QUICK: (64,), Scale.MINI: (256, 1024, 2048), Scale.FULL: (1024, 4096, 16384)}
ROUNDS = {Scale.QUICK: 3, Scale.MINI: 11, Scale.FULL: 15}
MULTISCALE = {"positions": ("after_embedding",), "layer": "multiscale"}


def reproduce(
    results: Path,
    *,
    scale: Scale | str = Scale.MINI,
    seeds: int | None = None,
    workers: int = 1,
    log: Callable[[str], None] = lambda line: None,
    data: Path | None = None,
) -> Findings:
    """Measure all variants against the baseline, and write the findings.

    Args:
        results: The results folder.
        scale: How long the sequences are.
        seeds: Interleaved pairs of which the median is told.
        workers: Not used: two measurements at once would disturb each other.
        log: Told what is going on, one line at a time.
        data: Not used: cost does not depend on what the tokens are.
    """
    scale = check_one_of("scale", scale, Scale)
    rounds = check_positive("seeds", seeds or ROUNDS[scale])
    check_scale(results, NAME, scale.value)
    rows: list[dict[str, Any]] = []
    for length in LENGTHS[scale]:
        for label, changes in _variants().items():
            rows.append({"length": length, "variant": label, **measure(changes, length, rounds)})
            log(f"length {length}, {label}: {rows[-1]['time']:.3f} times as long")
    found = Findings(
        name=NAME,
        question=QUESTION,
        scale=scale.value,
        claims=(_claim(rows, rounds),),
        tables={"cost against nothing placed (training step)": rows},
        notes=(f"8,192 tokens a step, two blocks of width 64, on {_device()}",),
    )
    found.write(results)
    return found


def measure(changes: Mapping[str, Any], length: int, rounds: int) -> dict[str, float]:
    """Return time, memory and parameters of a training step as multiples of the baseline's.

    Args:
        changes: Fields of the model's config that differ from the baseline's.
        length: Sites of a sequence.
        rounds: Interleaved pairs.
    """
    plain, placed = (_step(each, length) for each in ({}, changes))
    for step in (plain, placed):
        step()
    pairs = [(_seconds(placed), _seconds(plain)) for _ in range(rounds)]
    models = [_model(each, length) for each in ({}, changes)]
    bare, full = (_kept_bytes(model, _tokens(length)) for model in models)
    counts = [sum(each.numel() for each in model.parameters()) for model in models]
    return {
        "time": statistics.median(a / b for a, b in pairs),
        "memory": full / bare,
        "parameters": counts[1] / counts[0],
    }


def _variants() -> dict[str, Mapping[str, Any]]:
    rows = [*positions(), *(each for each in CONTROLS if each.label != "rotary")]
    return {each.label: each.model for each in rows} | {"after embedding, mixed": MULTISCALE}


def _model(changes: Mapping[str, Any], length: int) -> Classifier:
    shape: dict[str, Any] = {"vocabulary": 256, "length": length, "classes": 2}
    config = ModelConfig(**{"dim": 64, "blocks": 2, **shape, **changes})
    return Classifier(config, generator=torch.Generator().manual_seed(0)).to(_device())


def _tokens(length: int) -> Tensor:
    shape = (_batch(length), length)
    return torch.randint(256, shape, generator=torch.Generator().manual_seed(0)).to(_device())


def _batch(length: int) -> int:
    return max(1, 8192 // length)


def _device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


def _step(changes: Mapping[str, Any], length: int) -> Callable[[], None]:
    model, tokens = _model(changes, length), _tokens(length)

    def run() -> None:
        model.zero_grad(set_to_none=True)
        model(tokens).sum().backward()

    return run


def _seconds(run: Callable[[], None]) -> float:
    start = time.perf_counter()
    run()
    if _device() == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def _kept_bytes(model: nn.Module, tokens: Tensor) -> int:
    """Count what autograd keeps of one forward pass for the backward pass, each storage once."""
    kept: dict[int, int] = {}

    def pack(each: Tensor) -> Tensor:
        storage = each.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return each

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda each: each):
        loss = model(tokens).sum()
    assert loss.requires_grad, "a training step"
    return sum(kept.values())


def _claim(rows: Sequence[Mapping[str, Any]], rounds: int) -> JudgedClaim:
    ours = [row for row in rows if not str(row["variant"]).startswith(("conv", "fixed"))]
    dear = [row for row in ours if max(row["time"], row["memory"]) > SMALL]
    first = [row for row in ours if row["variant"] == "after embedding"]
    slowest = max(ours, key=lambda row: row["time"])
    widest = max(ours, key=lambda row: row["memory"])
    cheap = all(max(row["time"], row["memory"]) <= SMALL for row in first)
    verdict = (
        FindingVerdict.CONFIRMED
        if not dear
        else FindingVerdict.PARTLY
        if cheap
        else FindingVerdict.NOT_CONFIRMED
    )
    return JudgedClaim(
        claim="Paper A: diffusion costs little time and memory.",
        finding=(
            f"after embedding at most {max(row['time'] for row in first):.2f} × the time and "
            f"{max(row['memory'] for row in first):.2f} × the memory; the dearest are "
            f"{slowest['variant']} at length {slowest['length']} ({slowest['time']:.2f} × the "
            f"time) and {widest['variant']} ({widest['memory']:.2f} × the memory); "
            f"small is at most {SMALL:.2f} ×"
        ),
        verdict=verdict,
        n=rounds,
    )
