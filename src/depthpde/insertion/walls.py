"""Do inserted layers keep padding and decoded sites apart? Tried on a tiny input, then refused.

    [x]  and  [x | pad]             the real sites of the stream must agree
    [pad | x]  and  [pad′ | x]      likewise
    model(x)  and  model(x_t, cache of x_<t)

A family that a run has found may bring its mask or its cache by a way that nobody reads. At the
identity that does nothing; after the first update it would be quietly wrong. So the layers are
tried away from the identity before they are handed over. What the model itself lets through without
them is not theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from depthpde.insertion.calling import call_model, quiet
from depthpde.insertion.example import examples
from depthpde.insertion.family import Stack
from depthpde.insertion.hooks.container import PREFIX
from depthpde.insertion.hooks.model_hooks import MODEL_CACHES, returned_cache
from depthpde.insertion.learned import bypassed
from depthpde.insertion.moved import moved_weights
from depthpde.insertion.recorder import Recorder, argument_names

PADDED = 2
"""Sites of padding; and sites that are decoded one by one."""
TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-5}
COARSE_TOLERANCE = 2e-2
MARGIN = 10.0
"""A layer leaks if the stream moves by this much more with it than without: rounding grows too."""

Gaps = Iterator[tuple[str, float]]


def check_walls(
    model: nn.Module,
    stack: Stack,
    layers: Mapping[str, nn.Module],
    batch: Mapping[str, Any] | None,
) -> None:
    """Refuse layers that let padding or a cache through where the model itself does not.

    Args:
        model: Holds the layers already; it is left as it was.
        stack: The blocks that hold them.
        layers: What was inserted.
        batch: What the model can be called with; by default a tiny input is made.
    """
    for given in examples(model) if batch is None else (dict(batch),):
        trial = _Trial(model, stack, dict(given))
        with quiet(model):
            tried = [_check(trial, ask, layers) for ask in (trial.padding, trial.decoding)]
        if any(tried):
            return


def _check(trial: _Trial, ask: Callable[[bool], Gaps], layers: Mapping[str, nn.Module]) -> bool:
    """Refuse the layers if a question shows that they leak; return whether it could be asked."""
    gaps = _asked(ask(True))
    if max(gaps.values(), default=0.0) > 1:
        with bypassed(layers):
            before = _asked(ask(False))
        for what, gap in gaps.items():
            if gap > max(1.0, MARGIN * before.get(what, 0.0)):
                _refuse(trial.stack, what)
    return bool(gaps)


def _asked(gaps: Gaps) -> dict[str, float]:
    """Keep the largest gap of each kind; a call that is refused ends the question."""
    found: dict[str, float] = {}
    with suppress(_CannotRunError):
        for what, gap in gaps:
            found[what] = max(gap, found.get(what, 0.0))
    return found


def _refuse(stack: Stack, what: str) -> None:
    raise ValueError(
        f"a layer must let nothing pass that {stack.family.name} keeps apart, got {what} that "
        "reaches other sites in a trial: the mask or cache comes by a way that is not known; "
        "describe it with family= (padding=, cache=), or choose another module or position"
    )


class _CannotRunError(Exception):
    """A model does not take the tiny input."""


@dataclass(slots=True)
class _Trial:
    """A model, and the stream behind the last block of one of its stacks."""

    model: nn.Module
    stack: Stack
    given: dict[str, Any]

    def padding(self, moved: bool) -> Gaps:
        """Compare the real sites with and without padding, and with other padding."""
        for prefix in ("", "decoder_"):
            tokens = self.given.get(f"{prefix}input_ids")
            if not isinstance(tokens, Tensor) or tokens.ndim != 2:
                continue
            if f"{prefix}attention_mask" in argument_names(self.model):
                yield from self._padding(prefix, tokens, moved)

    def _padding(self, prefix: str, tokens: Tensor, moved: bool) -> Gaps:
        rest, pad = self._without(tokens), tokens[:, :PADDED]
        ones, none = torch.ones_like(tokens), torch.zeros_like(pad)

        def stream(ids: list[Tensor], mask: Tensor) -> Tensor:
            named = {"input_ids": torch.cat(ids, dim=1), "attention_mask": mask}
            return self._stream(rest | {prefix + key: each for key, each in named.items()}, moved)

        plain = stream([tokens], ones)
        right = stream([tokens, pad], torch.cat([ones, none], dim=1))
        if right.shape[1] != plain.shape[1] + PADDED:
            return  # the stack has the sites of another sequence
        yield "right padding", _gap(plain, right[:, : plain.shape[1]])
        mask = torch.cat([none, ones], dim=1)
        mask[:-1] = 1
        other = torch.where(pad > 1, pad - 1, pad + 1)
        one, two = (stream([each, tokens], mask)[-1, PADDED:] for each in (pad, other))
        yield "left padding", _gap(one, two)

    def decoding(self, moved: bool) -> Gaps:
        """Compare the last sites of a full pass with the same decoded one by one."""
        prefix = "decoder_" if "decoder_input_ids" in self.given else ""
        tokens = self.given.get(f"{prefix}input_ids")
        names = argument_names(self.model)
        cache_name = next((name for name in MODEL_CACHES if name in names), None)
        if not isinstance(tokens, Tensor) or tokens.ndim != 2 or cache_name is None:
            return
        rest = self._without(tokens) | ({"use_cache": True} if "use_cache" in names else {})
        full = self._stream(rest | {f"{prefix}input_ids": tokens}, moved)
        if full.shape[1] != tokens.shape[1]:
            return
        begin, cache = 0, None
        for end in range(tokens.shape[1] - PADDED, tokens.shape[1] + 1):
            part = rest | {f"{prefix}input_ids": tokens[:, begin:end]}
            made: list[Any] = []
            stream = self._stream(part | ({cache_name: cache} if begin else {}), moved, made)
            if begin and stream.shape[1] >= end - begin:
                yield "a cache", _gap(full[:, begin:end], stream[:, begin - end :])
            cache = returned_cache(made[0])
            if cache is None:
                return
            begin = end

    def _without(self, tokens: Tensor) -> dict[str, Any]:
        """Keep the arguments that have no entry for each token."""
        sizes = tokens.shape[:2]
        return {
            name: each
            for name, each in self.given.items()
            if not isinstance(each, Tensor) or each.shape[:2] != sizes or name.endswith("input_ids")
        }

    def _stream(self, given: dict[str, Any], moved: bool, made: list[Any] | None = None) -> Tensor:
        """Run the model and return the stream behind the last block as [batch, length, dim]."""
        seen: list[Tensor] = []
        block, family = self.stack.blocks[-1], self.stack.family
        weights = moved_weights(self.model, inside=PREFIX) if moved else {}
        try:
            with Recorder() as recorder:
                recorder.on_tap(block.parts, family.exit, seen.append)
                output = call_model(self.model, (), given, weights=weights)
        except ValueError as error:  # it refuses by itself, or takes no such input
            raise _CannotRunError from error
        if made is not None:
            made.append(output)
        if not seen or seen[-1].ndim != len(family.layout_of(block.parts).value):
            raise _CannotRunError
        return family.layout_of(block.parts).field(seen[-1]).detach().clone()


def _gap(a: Tensor, b: Tensor) -> float:
    """Relate how far a stream moves to what rounding may do; a step to or from NaN is endless."""
    tolerance = TOLERANCE.get(a.dtype, COARSE_TOLERANCE) * a.abs().max().clamp_min(1e-12)
    return float(torch.nan_to_num((b - a).abs().max() / tolerance, nan=torch.inf))
