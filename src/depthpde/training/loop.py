"""train(model, split, config) → History: plain torch, resumed to the bit from any update."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import cast

import torch
from torch import Tensor, nn

from depthpde.data.batching import Batch, Batches, Cursor
from depthpde.data.reader import Split
from depthpde.seeds import derive, generator
from depthpde.training.checkpoint import Checkpoint, Checkpoints
from depthpde.training.config import Keep, Precision, TrainingConfig
from depthpde.training.evaluate import (
    BatchTransform,
    count_targets,
    cross_entropy,
    evaluate,
    predict,
)
from depthpde.training.fingerprint import identity, weights_digest
from depthpde.training.history import History, Point, Status, Validation
from depthpde.training.interruption import Interruption
from depthpde.training.memory import keep_freed_memory
from depthpde.training.optimizer import (
    build_optimizer,
    learned_ratios,
    optimizer_tensors,
    restore_optimizer,
    set_rate,
)
from depthpde.training.processes import Processes

StepCallback = Callable[[History, Point], None]


def train(
    model: nn.Module,
    split: Split,
    config: TrainingConfig,
    *,
    validation: Split | None = None,
    folder: str | Path | None = None,
    callback: StepCallback | None = None,
    log: Callable[[str], None] = lambda line: None,
    batch_transform: BatchTransform | None = None,
) -> History:
    """Train a model, or resume its training from the last checkpoint.

        update k:   g = mean gradient over the batches of update k,   clipped
                    weights ← AdamW(weights, g, rate(k))

    Batches are a function of (seed, epoch), dropout of (seed, k), the rate of k: weights,
    AdamW's memory and k are the whole state, so a resumed run equals an unbroken one bit for
    bit. torch's own random stream is left as it was found. Under `torchrun`, once the process
    group is joined, all processes call this with the same arguments and share every batch.

    >>> model = dp.Classifier(dp.ModelConfig(dim=16, blocks=1), task=dp.tasks["listops-mini"])
    >>> split, config = dp.load("listops-mini", "train"), dp.TrainingConfig(updates=2, warmup=0)
    >>> history = dp.train(model, split, config)

    Args:
        model: A classifier, or a language model for a language task; trained in place.
        split: The training examples.
        config: How.
        validation: Examples that choose the best weights and the end; never the test split.
        folder: Where checkpoints go; None keeps none, and an interruption loses the run.
        callback: Called after every update; see `Progress`. Closed at the end, however the training
            ends, if it has a `close`.
        log: Called with anything unusual, one line at a time.
        batch_transform: What is made of each batch before the model sees it; see `pretraining`.
    """
    if validation is not None and validation.name == "test":
        raise ValueError(
            "`validation` must not be the test split: choosing by it makes its accuracy too "
            "good; give the validation split, and evaluate on test when the run is done"
        )
    run = _Run(model, split, config, validation, batch_transform)
    checkpoints = None
    if folder is not None:
        checkpoints = Checkpoints(folder, identity(model, split, validation, config))
        run.resume(checkpoints, log)
    mode = model.training
    device = run.device
    if device.type == "cpu":
        keep_freed_memory()
    try:
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            run.advance(checkpoints, callback)
    finally:
        model.train(mode)
        close = getattr(callback, "close", None)
        if close is not None:
            close()
    if run.history.finished and run.best and config.keep is Keep.BEST:
        model.load_state_dict(run.best)
    return run.history


@dataclass(frozen=True, slots=True)
class Gradient:
    """What one backward pass over a group of batches found."""

    loss: float
    right: int
    labels: int
    tokens: int


def accumulate_gradient(
    model: nn.Module, group: list[Batch], config: TrainingConfig, *, labels: int
) -> Gradient:
    """Add the gradient of the mean loss over all labels of a group of batches.

        ∇ Σ_b (n_b / n) loss_b

    The same as one batch of them all, but for the order of sums.

    Args:
        model: The model.
        group: Batches, or this process's share of them.
        config: Says the precision and the label smoothing.
        labels: n, the labels of the whole group.
    """
    half = config.precision is Precision.BFLOAT16
    loss, right, judged, tokens = 0.0, 0, 0, 0
    for batch in group:
        with torch.autocast(batch.tokens.device.type, dtype=torch.bfloat16, enabled=half):
            logits = predict(model, batch)
        logits = logits.float() if half else logits
        part = cross_entropy(logits, batch.labels, smoothing=config.label_smoothing)
        count = count_targets(batch.labels)
        part = part * (count / labels)
        part.backward()  # type: ignore[no-untyped-call]
        loss += float(part.detach())
        judged += count
        right += int((logits.detach().argmax(dim=-1) == batch.labels).sum())
        tokens += batch.real_tokens()
    return Gradient(loss, right, judged, tokens)


class _Run:
    """A model, its optimizer and its history, on their way."""

    def __init__(
        self,
        model: nn.Module,
        split: Split,
        config: TrainingConfig,
        validation: Split | None,
        batch_transform: BatchTransform | None,
    ) -> None:
        self.model, self.config, self.validation, self.batch_transform = (
            model,
            config,
            validation,
            batch_transform,
        )
        # A wrapper that shares the weights: names in checkpoints do not change with it.
        compiled = torch.compile(model, dynamic=True) if config.compile else model
        self.call = cast("nn.Module", compiled)
        self.optimizer = build_optimizer(model, config)
        self.parameters = [each for each in model.parameters() if each.requires_grad]
        self.device = self.parameters[0].device
        self.batches = Batches(split, config.batch_size, seed=config.seed)
        self.history = History(start=weights_digest(model.state_dict()))
        self.best: dict[str, Tensor] = {}
        self.processes = Processes.joined()

    def advance(self, checkpoints: Checkpoints | None, callback: StepCallback | None) -> None:
        """Make updates until the run ends or a signal comes."""
        history, config = self.history, self.config
        stream = self.batches.stream(history.cursor)
        spent = history.seconds - time.perf_counter()
        together = self.processes
        together.check_together(weights_digest(self.model.state_dict()), history.update)
        with Interruption() as interruption:
            while not history.finished and not history.signal:
                now = self._update(stream)
                if now is not None:
                    self._look(now)
                    if callback is not None:
                        callback(history, now)
                (number,) = together.largest([interruption.signal])
                if number and not history.finished:
                    history.status, history.signal = Status.INTERRUPTED, int(number)
                history.seconds = spent + time.perf_counter()
                due = history.update % config.checkpoint_every == 0
                if checkpoints and together.leads and (due or history.finished or history.signal):
                    checkpoints.save(history.update, self._pack())

    def resume(self, checkpoints: Checkpoints, log: Callable[[str], None]) -> None:
        """Take up the newest whole checkpoint, if there is one."""
        notes: list[str] = []
        found = checkpoints.latest(notes.append)
        for note in notes:
            log(note)
        if found is None:
            return
        kinds: dict[str, dict[str, Tensor]] = {"model": {}, "optimizer": {}, "best": {}}
        for full, value in found.tensors.items():
            kind, name = full.split("/", 1)
            kinds[kind][name] = value
        history = History.from_dict(found.history)
        known = {history.start, *(weights_digest(kinds[each]) for each in ("model", "best"))}
        if self.history.start not in known:
            raise ValueError(
                f"`model` must have the first weights of the run in {checkpoints.folder}, got "
                "others; build it with the same seed, or use another folder"
            )
        self.model.load_state_dict(kinds["model"])
        restore_optimizer(self.model, self.optimizer, kinds["optimizer"])
        self.history, self.best = history, kinds["best"]
        history.notes += notes
        if not history.finished:
            history.status, history.signal = Status.RUNNING, 0
            log(f"resumed at update {history.update} of {self.config.updates}")

    def _update(self, stream: Iterator[tuple[Cursor, Batch]]) -> Point | None:
        """Make one update, and return it as a point; None where it diverged."""
        history, config = self.history, self.config
        taken = list(islice(stream, config.accumulate))
        if not self.model.training:  # asking every module at every update would take its time
            self.model.train()
        self.optimizer.zero_grad(set_to_none=True)
        found = self._gradient([batch for _, batch in taken])
        bound = math.inf if config.clip is None else config.clip
        norm = float(torch.nn.utils.clip_grad_norm_(self.parameters, bound))
        if not found.loss <= config.loss_bound or not math.isfinite(norm):
            self._diverge(f"loss {found.loss:g} and gradient norm {norm:g} in training")
            return None
        rate = set_rate(self.optimizer, config, history.update)
        self.optimizer.step()
        history.update += 1
        history.cursor = taken[-1][0]
        history.tokens += found.tokens
        sums = (found.loss, 1, found.right, found.labels)
        history.window = [old + new for old, new in zip(history.window, sums, strict=True)]
        accuracy = 100.0 * found.right / found.labels
        return Point(history.update, history.cursor.epoch, found.loss, accuracy, rate, norm)

    def _gradient(self, group: list[Batch]) -> Gradient:
        """Leave the gradient of a group in the parameters, that of all processes added."""
        together, config, update = self.processes, self.config, self.history.update
        if (
            self.batch_transform is not None
        ):  # before it is shared: alike for any number of processes
            streams = [generator(config.seed, "recast", update, n) for n in range(len(group))]
            group = [self.batch_transform(*each) for each in zip(group, streams, strict=True)]
        rank = (together.rank,) if together.rank else ()  # the leader draws as one alone does
        _seed(derive(config.seed, "update", update, *rank), self.device)
        shares = [each.to(self.device) for each in map(together.share, group) if each is not None]
        labels = sum(count_targets(each.labels) for each in group)
        part = accumulate_gradient(self.call, shares, config, labels=labels)
        together.add_gradients(self.parameters)
        loss, *counts = together.add([part.loss, part.right, part.labels, part.tokens])
        return Gradient(loss, *map(int, counts))

    def _look(self, now: Point) -> None:
        """Note a point, look at the validation split, and decide whether to end."""
        history, config = self.history, self.config
        last = history.update == config.updates
        if last or history.update % config.log_every == 0:
            loss, updates, right, labels = history.window
            mean = (loss / updates, 100.0 * right / labels)
            point = Point(now.update, now.epoch, *mean, now.rate, now.gradient_norm)
            history.points.append(point)
            history.window = [0.0] * 4
        if self.validation is not None and (last or history.update % config.evaluate_every == 0):
            self._validate(self.validation)
        if history.finished:
            return
        if last:
            history.status = Status.DONE
        elif config.patience and history.validations_since_best() >= config.patience:
            history.status = Status.STOPPED

    def _validate(self, split: Split) -> None:
        history = self.history
        numbers = [0.0, 0.0]
        if self.processes.leads:
            size = 2 * self.config.batch_size
            found = evaluate(
                self.model, split, batch_size=size, batch_transform=self.batch_transform
            )
            numbers = [found.accuracy, found.loss]
        accuracy, loss = self.processes.from_leader(numbers)
        if not math.isfinite(loss):
            self._diverge(f"loss {loss:g} in validation")
            return
        looked = Validation(history.update, accuracy, loss, learned_ratios(self.model))
        history.validations.append(looked)
        if history.best is None or looked.accuracy > history.best.accuracy:
            history.best = looked
            if self.config.keep is Keep.BEST:
                self.best = {name: each.clone() for name, each in self.model.state_dict().items()}

    def _diverge(self, found: str) -> None:
        after = f"after {self.history.update} updates, where at most a loss of"
        self.history.status = Status.DIVERGED
        self.history.reason = f"{found} {after} {self.config.loss_bound:g} is allowed"

    def _pack(self) -> Checkpoint:
        tensors = {
            "model": self.model.state_dict(),
            "optimizer": optimizer_tensors(self.model, self.optimizer),
            "best": self.best,
        }
        flat = {f"{kind}/{name}": v for kind, each in tensors.items() for name, v in each.items()}
        return Checkpoint(flat, self.history.to_dict())


def _seed(value: int, device: torch.device) -> None:
    """Set the random stream that dropout on a device draws from."""
    if device.type == "cpu":  # torch.manual_seed asks for every other device too, and is slow
        torch.default_generator.manual_seed(value)
    else:
        torch.manual_seed(value)
