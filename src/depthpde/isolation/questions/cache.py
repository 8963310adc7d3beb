"""Does decoding with a cache give what the full pass gives?

model(x[:n])[t]  =  model(x[t], cache of x[:t])       for the last sites t, and for a chunk
"""

from __future__ import annotations

import inspect
from collections.abc import Container, Iterator, Mapping
from functools import partial
from typing import Any

from torch import nn

from depthpde.insertion.recorder import argument_names
from depthpde.isolation.batch import CallBatch, Sequence
from depthpde.isolation.question import Question
from depthpde.isolation.runner import AuditRun, Call, single
from depthpde.isolation.subject import AuditSubject
from depthpde.isolation.trace import ModuleCall
from depthpde.isolation.trial import Trial
from depthpde.layers.decoding import DecodeCache

CACHES = ("past_key_values", "cache_params", "cache", "kv_cache", "past", "state")
"""Arguments that hold what earlier sites left behind."""
STEPS = 3
CHUNK = "a chunk"
INTERMEDIATES = "return_intermediates"
"""The argument of x-transformers that makes a call return its cache. Its calls take the past sites
too and keep the last `cache_age` of them, as its own `generate` has it."""


def _excuse(subject: AuditSubject) -> str:
    if subject.main is None:
        return "its input has no sequence of tokens"
    if subject.incomplete:
        return subject.incomplete
    if _argument(subject.batch.accepts) is None:
        return "the model takes no cache" + _inner(subject.model)
    if getattr(subject.model, "can_cache_kv", True) is False:
        return "the model cannot be decoded with a cache, as its can_cache_kv says"
    if subject.causal is not True:
        return "a model whose sites see their future cannot be decoded"
    return ""


def _trials(subject: AuditSubject) -> Iterator[Trial]:
    sequence = subject.main
    assert sequence is not None
    length = sequence.length
    first = subject.batch.sequences[0]
    reference = subject.plain if sequence is first else single(subject.batch, sequence)
    start = max(1, length - STEPS)
    whole = _run(subject, sequence, tuple(range(start, length + 1)), shared=True)
    for count in range(1, length - start + 1):
        ends = tuple(range(start, start + count + 1))
        run = whole if ends[-1] == length else _run(subject, sequence, ends, within=(whole, count))
        what = f"decoding token {count} with a cache"
        yield _trial(sequence, reference, run, ends, what)
    ends = (start, length)
    run = _run(subject, sequence, ends)
    yield _trial(sequence, reference, run, ends, f"decoding {CHUNK} with a cache")


def _run(
    subject: AuditSubject, sequence: Sequence, ends: tuple[int, ...], **options: Any
) -> AuditRun:
    decode = partial(_decode, subject, sequence, ends)
    return AuditRun(calls=decode, rows=subject.batch.rows, length=ends[-1] - ends[-2], **options)


def _trial(
    sequence: Sequence, reference: AuditRun, run: AuditRun, ends: tuple[int, ...], what: str
) -> Trial:
    sites = slice(ends[-2], ends[-1]), slice(None)
    return Trial(what=what, reference=reference, other=run, sequence=sequence, sites=sites)


def _decode(subject: AuditSubject, sequence: Sequence, ends: tuple[int, ...], call: Call) -> None:
    """Call a model on the sites up to ends[0], then up to ends[1] …, with its cache."""
    batch, name = subject.batch, str(_argument(subject.batch.accepts))
    cache, begin = _empty(subject), 0
    for end in ends:
        part, values = _step(batch, sequence, begin, end)
        values[name] = cache
        mask = batch.values.get(sequence.mask or "")
        if mask is not None:
            values[str(sequence.mask)] = mask[:, :end]
        found = _returned(call(part.having(values)), name)
        cache = cache if isinstance(cache, DecodeCache) else found
        if cache is None:
            raise ValueError("the model returns no cache")
        begin = end


def _step(
    batch: CallBatch, sequence: Sequence, begin: int, end: int
) -> tuple[CallBatch, dict[str | int, Any]]:
    """Return the sites that a call is given, and what makes it return its cache."""
    if INTERMEDIATES in batch.accepts:
        return batch.cut(sequence, slice(0, end)), {INTERMEDIATES: True, "cache_age": end - begin}
    wanted: dict[str | int, Any] = {"use_cache": True} if "use_cache" in batch.accepts else {}
    return batch.cut(sequence, slice(begin, end)), wanted


def _argument(accepts: Container[str]) -> str | None:
    return next((name for name in CACHES if name in accepts), None)


def _inner(model: nn.Module) -> str:
    """Name the part of a wrapper that takes a cache; that of a wrapper for training does."""
    for name, child in model.named_children():
        if _argument(argument_names(child)) is not None:
            return f"; audit its `{name}`, which does"
    return ""


def _empty(subject: AuditSubject) -> Any:
    """Return what a first call is given: our models fill an object, others return one."""
    parameters = inspect.signature(subject.model.forward).parameters
    kind = str(parameters[str(_argument(subject.batch.accepts))].annotation)
    return DecodeCache() if DecodeCache.__name__ in kind else None


def _returned(output: Any, name: str) -> Any:
    if isinstance(output, Mapping):
        return output.get(name)
    if isinstance(output, tuple):
        return output[1] if len(output) > 1 else None
    return getattr(output, name, None)


def _design(subject: AuditSubject, trial: Trial, source: ModuleCall) -> str:
    recurrent = _argument(subject.batch.accepts) == "cache_params" and CHUNK in trial.what
    return "a recurrent cache takes one token at a time" * recurrent


QUESTION = Question(
    name="cache",
    asks="does decoding with a cache give what the full pass gives?",
    excuse=_excuse,
    trials=_trials,
    design=_design,
)
