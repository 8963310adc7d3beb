"""Condition: the names of what can be wrong; Symptom: the number that one is known by."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Condition(StrEnum):
    """What can be wrong.

    >>> model = dp.Classifier(dp.ModelConfig(dim=16, vocabulary=9, length=12, classes=3))
    >>> conditions = dp.diagnose(model, torch.randint(9, (4, 12))).conditions
    >>> collapsed = dp.Condition.RANK in conditions
    """

    NOT_FINITE = "not finite"
    DRIFT = "representational drift"
    RANK = "rank collapse"
    SMOOTHING = "over-smoothing"
    ENTROPY = "entropy collapse"
    EXPLODING = "exploding gradients"
    VANISHING = "vanishing gradients"
    DIFFUSION = "unstable diffusion"
    LEAK = "causal leak"
    DEAD = "dead layers"
    STREAM = "stream explosion"
    MASSIVE = "massive activations"
    SINKS = "attention sinks"
    LOGITS = "attention-logit growth"
    BLIND_HEADS = "blind heads"
    TIED_HEADS = "tied heads"
    DEAD_HEADS = "dead heads"
    SCALE = "attention scale"
    OTHERWISE = "unusual attention"
    MASK_REACH = "mask within reach"
    NEURONS = "dead neurons"
    REDUNDANT = "redundant blocks"
    EMPTY_WEIGHTS = "empty weights"
    FROZEN = "frozen weights"
    NORM_EPSILON = "norm epsilon"
    LARGE_EPSILON = "large epsilon"
    POSITIONS = "position blindness"
    ONE_SIDED = "one-sided encoder"
    PADDING = "padding leak"
    CACHE = "cache mismatch"
    UNREPEATABLE = "unrepeatable"
    MODES = "train and eval differ"
    BLOCK_SUM = "other block sum"
    DROPOUT = "misplaced dropout"
    PRECISION = "lower precision"
    ACTIVATION = "unusual activation"
    NORM_SHIFT = "norms moved as one"
    SIZES = "weights out of scale"
    REPEATED = "repeated positions"
    WIDTH = "other output width"
    UNTRAINED = "untrained head"
    OUTPUT = "output-logit drift"
    CONSTANT = "constant output"
    UNMOVED = "weights that never move"
    UPDATES = "update ratio"
    CODE = "other code than the reference"
    WEIGHTS = "other weights than the reference"
    OWN_CLASS = "other code than its class"


@dataclass(frozen=True, slots=True)
class Symptom:
    """The number that a condition is known by, and the sentence a person reads.

    >>> symptom = dp.Symptom(3.0, "block 2 is three times as loud", where="block 2")
    """

    value: float
    evidence: str
    where: str = ""
    """The module or block at fault, where one can be named."""
    component: str = ""
    """The part of a Transformer it belongs to, where the condition alone does not say."""
