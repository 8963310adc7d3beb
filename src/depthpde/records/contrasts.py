"""Contrasts: one weighted sum of variants, computed within each task and seed.

    d_ts = Σ_v w_v score_vts,    Σ_v w_v = 0

Within a seed all variants share data order and first weights, so a contrast of many variants is
as paired as one of two. A difference, the main effect of a factorial and an interaction are three
choices of weights.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from depthpde.errors import check_name
from depthpde.records.scores import Scores
from depthpde.records.verdicts import Hypothesis, Verdict, judge

Weights = Mapping[str, float]
"""Variant → weight; they add up to 0."""
Contrast = dict[str, dict[int, float]]
"""Task → seed → value."""


def difference(variant: str, baseline: str) -> dict[str, float]:
    """Return the weights of one variant against another."""
    return {variant: 1.0, baseline: -1.0}


def average_difference(variants: Sequence[str], baselines: Sequence[str]) -> dict[str, float]:
    """Return the weights of the mean of some variants against the mean of others.

    Args:
        variants: Counted with 1 / their number.
        baselines: Counted with −1 / their number; a name in both lists gets the sum.
    """
    if not variants or not baselines:
        raise ValueError(
            f"`variants` and `baselines` must each name one, got {list(variants)} and "
            f"{list(baselines)}; say what is compared"
        )
    found: dict[str, float] = {}
    for names, sign in ((variants, 1.0), (baselines, -1.0)):
        for name in names:
            found[name] = found.get(name, 0.0) + sign / len(names)
    return found


def interaction(first: Weights, second: Weights) -> dict[str, float]:
    """Return the weights of how much more one difference is than another.

        w = first − second

    Two things are *orthogonal* if the effect of one does not depend on the other: if this is 0.

    Args:
        first: Such as the effect of diffusion without positions.
        second: Such as its effect with learned ones.
    """
    names = dict.fromkeys((*first, *second))
    return {name: first.get(name, 0.0) - second.get(name, 0.0) for name in names}


def contrast(scores: Scores, weights: Weights) -> Contrast:
    """Compute a contrast for each task and seed that have every variant in it.

        contrast(scores, difference("after embedding", "baseline"))["text-mini"]   # seed → points

    Args:
        scores: Variant → task → seed → number.
        weights: Variant → weight; variants of weight 0 are not needed.
    """
    used = {check_name("weights", v, scores): float(w) for v, w in weights.items() if w}
    if not used or abs(sum(used.values())) > 1e-9:
        raise ValueError(
            f"`weights` must add up to 0 and not all be 0, got {sum(used.values()):g} over "
            f"{len(used)} variants; subtract what is compared with"
        )
    tasks = [task for task in next(iter(scores.values())) if all(task in scores[v] for v in used)]
    found: Contrast = {}
    for task in tasks:
        seeds = set.intersection(*(set(scores[v][task]) for v in used))
        if seeds:
            found[task] = {
                s: sum(w * scores[v][task][s] for v, w in used.items()) for s in sorted(seeds)
            }
    return found


def differences_of(found: Contrast, *, without: Iterable[str] = ()) -> dict[str, list[float]]:
    """Return a contrast as what `judge` takes, some tasks left out.

    Args:
        found: Task → seed → value.
        without: Tasks that do not belong in a mean, such as those learned at once or not yet.
    """
    out = set(without)
    return {task: list(each.values()) for task, each in found.items() if task not in out}


def along(curves: Mapping[int, Scores], weights: Weights) -> dict[int, Contrast]:
    """Compute a contrast at every look of training: does it grow, and is it still growing?

    Args:
        curves: Update → scores on the validation split.
        weights: Variant → weight.
    """
    known = {u: scores for u, scores in curves.items() if all(v in scores for v in weights)}
    found = {u: contrast(scores, weights) for u, scores in known.items()}
    return {update: each for update, each in found.items() if each}


def fragility(found: Contrast, hypothesis: Hypothesis) -> dict[str, Verdict]:
    """Judge a claim anew with each task left out: does one task carry the verdict?

    Args:
        found: Task → seed → value, of at least two tasks.
        hypothesis: What was claimed.

    Returns:
        Task left out → verdict of the others.
    """
    if len(found) < 2:
        raise ValueError(
            f"`found` must hold at least two tasks to leave one out, got {len(found)}; judge it"
        )
    return {task: judge(differences_of(found, without=[task]), hypothesis) for task in found}
