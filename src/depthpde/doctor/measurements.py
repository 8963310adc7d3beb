"""Measurements: from what passed by to labelled series, group by group.

drift · rank · energy        of the stream, by depth
attention · coupling         of the weights, by block
spectrum                     of the field's frequencies by depth, of the weights by block
lyapunov                     of the blocks' Jacobians, by block; where it is requested
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.linalg import vector_norm

from depthpde.doctor.activations import Activations
from depthpde.doctor.attention_weights import AttentionWeights, attention_weights
from depthpde.doctor.depth_profile import DepthSeries, Value, block_labels, depth_labels
from depthpde.doctor.large import MANY, RANK_TOKENS, is_large
from depthpde.doctor.model_map import ModelMap
from depthpde.doctor.not_measured import NotMeasured
from depthpde.layers.recurrence import Recurrence
from depthpde.measures import attention, coupling, drift, energy, lyapunov, rank, spectrum
from depthpde.measures.tokens import mean_over_batch, real_field, real_tokens
from depthpde.models.block import Block as OwnBlock
from depthpde.shapes import Field, Mask

T = TypeVar("T")

GROUPS = ("drift", "rank", "energy", "attention", "coupling", "spectrum")
ON_REQUEST = ("lyapunov",)
"""Expensive groups (a block is differentiated twice): off by default."""
MOST_TOKENS = 1024
"""Tokens, evenly spaced, of which the effective rank of a batch is measured."""
MOST_SEQUENCES = 8
"""Sequences of which the clusters are counted: that is quadratic in the length."""
NUM_FREQUENCIES = 9
LARGEST_MATRIX = 2**22
"""Entries of a matrix up to which its whole spectrum is computed."""
MOST_TANGENTS = 4
"""Sequences through whose blocks tangents are carried."""
HEAD_WORDS = {
    "sink": "mean weight of each head on the first token",
    "logit": "largest |q·k|/√d of each head",
    "twin": "least difference of each head's weights to another head's",
    "head_size": "what each head gives that differs between tokens, against the mean head",
    "scale": "what the scores are multiplied with, against 1/√d",
    "hidden": "largest weight on a site that a finite mask hides",
}
"""Measures of single heads, and of the scores of a block."""
TANGENT_BUDGET = 2**23
"""Attention weights of all blocks together that are held for that."""


class Measurements:
    """Measures of one pass, as they come in, and what could not be had.

    Args:
        model_map: The model.
        activations: What passed by.
        light: Leave out what is dear and no verdict needs: CKA, effective rank, clusters, how
            attention differs from that of the block before.
    """

    def __init__(
        self, model_map: ModelMap, activations: Activations, *, light: bool = False
    ) -> None:
        self.model_map, self.activations, self.light = model_map, activations, light
        self.series: dict[str, DepthSeries] = {}
        self.missing: dict[str, str] = {}
        self.depths = depth_labels(len(model_map.blocks))
        self.blocks = block_labels(len(model_map.blocks))

    def take(self, groups: Collection[str]) -> Measurements:
        """Measure the requested groups; one that cannot be is named, with the reason."""
        fields, mask = self.activations.fields(), self.activations.valid_mask
        attention_weights = [each for each in ("attention", "coupling") if each in groups]
        parts: dict[str, tuple[bool, Callable[[], None]]] = {
            "drift": ("drift" in groups, lambda: self._drift(fields, mask)),
            "rank": ("rank" in groups, lambda: self._rank(fields, mask)),
            "energy": ("energy" in groups, lambda: self._energy(fields, mask)),
            "attention": (bool(attention_weights), lambda: self._attention(fields, groups)),
            "spectrum.bands": ("spectrum" in groups, lambda: self._bands(fields, mask)),
            "spectrum.transfer": ("spectrum" in groups, self._transfer),
            "spectrum.weights": ("spectrum" in groups, self._weights),
            "lyapunov": ("lyapunov" in groups, lambda: self._lyapunov(fields, mask)),
        }
        for name, (requested, measure) in parts.items():
            if requested:
                self.attempt(name, measure)
        return self

    def attempt(self, name: str, measure: Callable[[], T]) -> T | None:
        """Measure something, or note why it cannot be measured on this model."""
        try:
            return measure()
        except Exception as error:  # no shape of a model that nobody thought of ends a diagnosis
            why = next(iter(str(error).splitlines()), "")
            self.missing[name] = f"its shapes are not those of this measure: {why}"
            return None

    def add(self, name: str, words: str, labels: Sequence[str], values: Sequence[Value]) -> None:
        """Note a series."""
        self.series[name] = DepthSeries(name, words, tuple(labels), tuple(values))

    def _drift(self, fields: list[Field], mask: Mask | None) -> None:
        compared: dict[str, tuple[drift.Comparison, str]] = {
            "cosine": (drift.cosine, "cosine"),
            "centred_cosine": (drift.centred_cosine, "centred cosine"),
        }
        for name, (compare, words) in compared.items():
            first = drift.against_first(compare, fields, mask)
            step = drift.between_layers(compare, fields, mask)
            self._add_drift(name, words, first, step)
        if not self.light:
            self._add_drift("cka", "linear CKA", *drift.cka_profile(fields, mask))
        moved = drift.between_layers(drift.displacement, fields, mask)
        self.add("drift.displacement", "‖u_l − u_{l−1}‖ / ‖u_{l−1}‖", self.blocks, _means(moved))
        parts = (("attention", self.activations.interaction), ("ffn", self.activations.reaction))
        for name, increments in parts:
            if len(increments) == len(self.blocks):
                shares = [
                    live_share(increments[k], fields[k], mask) for k in range(len(self.blocks))
                ]
                words = f"what {name} adds that differs between tokens, against how the stream does"
                self.add(f"drift.{name}_share", words, self.blocks, shares)

    def _add_drift(self, name: str, words: str, first: list[Tensor], step: list[Tensor]) -> None:
        self.add(f"drift.{name}", f"{words} to the input", self.depths, _means(first))
        self.add(f"drift.step_{name}", f"{words} to one block before", self.blocks, _means(step))

    def _rank(self, fields: list[Field], mask: Mask | None) -> None:
        residuals = [rank.rank_residual(u, mask) for u in fields]
        self.add("rank.residual", "‖X − 1x̄ᵀ‖ / ‖X‖", self.depths, _means(residuals))
        alike = [rank.token_cosine(u, mask) for u in fields]
        self.add("rank.token_cosine", "mean cosine of two tokens", self.depths, _means(alike))
        if self.light:
            return
        most = RANK_TOKENS if is_large(self.model_map.model) else MOST_TOKENS
        pooled = [float(rank.effective_rank(_some_tokens(u, mask, most)[None])) for u in fields]
        self.add("rank.effective", "directions that the tokens use", self.depths, pooled)
        few = [u[:MOST_SEQUENCES] for u in fields]
        short = None if mask is None else mask[:MOST_SEQUENCES]
        groups = [rank.cluster_count(u, short) for u in few]
        self.add("rank.clusters", "groups of tokens with cosine ≥ 0.9", self.depths, _means(groups))

    def _energy(self, fields: list[Field], mask: Mask | None) -> None:
        measures: dict[str, tuple[Callable[[Field, Mask | None], Tensor], str]] = {
            "dirichlet": (energy.dirichlet, "½ Σ ‖u_{i+1} − u_i‖² / n"),
            "smoothness": (energy.smoothness_quotient, "E(u) / ‖u − ū‖²; 1: unrelated neighbours"),
            "size": (energy.field_size, "root mean square of the field"),
            "peak": (energy.peak, "largest |u|"),
            "massive": (energy.prominence, "largest |u| against the median"),
        }
        for name, (measure, words) in measures.items():
            self.add(
                f"energy.{name}", words, self.depths, _means([measure(u, mask) for u in fields])
            )
        layers = energy.diffusion_layers(self.model_map.model)
        if layers:
            margins = [energy.cfl_margin(layer) for layer in layers.values()]
            self.add("energy.cfl_margin", "1 − max r / r_stable", list(layers), margins)

    def _attention(self, fields: list[Field], groups: Collection[str]) -> None:
        names = ("entropy", "gap", "js", "kl", "coupling", *HEAD_WORDS)
        rows: dict[str, list[Any]] = {name: [] for name in names}
        before: Tensor | None = None
        for k in range(len(self.blocks)):
            found = attention_weights(self.model_map, self.activations, k)
            if isinstance(found, NotMeasured):
                self.missing["attention"] = self.missing["coupling.frozen"] = found.reason
                return
            rows["entropy"].append(_per_head(attention.entropy(found.weights, found.seen)))
            self._heads(rows, found, k)
            if not self.light:
                gap = attention.doubly_stochastic_gap(found.weights, found.valid_mask)
                rows["gap"].append(_per_head(gap))
                mean = found.weights.mean(dim=1, keepdim=True)
                if before is not None:
                    rows["js"].append(mean_over_batch(attention.js(before, mean, found.seen)))
                    rows["kl"].append(mean_over_batch(attention.kl(mean, before, found.seen)))
                before = mean
            if "coupling" in groups:
                rows["coupling"].append(self._frozen(found, fields[k]))
        self.add("attention.entropy", "H / log n of each head", self.blocks, rows["entropy"])
        if rows["gap"]:
            words = "½ mean |column sum − 1| of each head"
            self.add("attention.stochastic_gap", words, self.blocks, rows["gap"])
        for name, words in HEAD_WORDS.items():
            if len(rows[name]) == len(self.blocks):
                self.add(f"attention.{name}", words, self.blocks, rows[name])
        if rows["js"]:
            words = "Jensen–Shannon to one block before, heads averaged"
            self.add("attention.step_js", words, self.blocks[1:], rows["js"])
            words = "Kullback–Leibler from one block before in nats, heads averaged"
            self.add("attention.step_kl", words, self.blocks[1:], rows["kl"])
        if "coupling" in groups:
            words = "‖[D_r, A] u‖ / ‖u‖ at r = 1/4"
            self.add("coupling.frozen", words, self.blocks, rows["coupling"])
            self._nonlinear(fields)

    def _heads(self, rows: dict[str, list[Any]], found: AttentionWeights, k: int) -> None:
        """Note what the scores and the outputs of the heads of one block show."""
        first = attention.on_first(found.weights, found.valid_mask)
        rows["sink"].append(_per_head(first))
        rows["scale"].append(float(found.scale))
        rows["hidden"].append(float(found.hidden))
        if found.weights.shape[1] > 1:
            rows["twin"].append(attention.nearest_head(found.weights).tolist())
        if found.logits is not None:
            rows["logit"].append(found.logits.tolist())
        made = self.activations.inside.get(k, {}).get("heads")
        if made is not None and made.shape[-1] % found.weights.shape[1] == 0:
            tokens = real_tokens(made, found.valid_mask).reshape(
                -1, found.weights.shape[1], made.shape[-1] // found.weights.shape[1]
            )
            sizes = vector_norm((tokens - tokens.mean(dim=0)).float(), dim=(0, 2))
            rows["head_size"].append((sizes / sizes.mean().clamp_min(1e-30)).tolist())

    def _frozen(self, found: AttentionWeights, u: Field) -> float:
        few = found.weights.shape[0]
        return mean_over_batch(coupling.frozen_coupling(found.weights, u[:few], found.valid_mask))

    def _nonlinear(self, fields: list[Field]) -> None:
        mask, found = self.activations.valid_mask, []
        for block, u in zip(self.model_map.blocks, fields, strict=False):
            if not isinstance(block.parts, OwnBlock):
                self.missing["coupling.nonlinear"] = (
                    "attention of another library cannot be called alone on another field"
                )
                return
            attend = partial(_attend, block.parts.attention, mask)
            with torch.no_grad():
                found.append(mean_over_batch(coupling.nonlinear_coupling(attend, u, mask)))
        words = "‖D_r Attn(u) − Attn(D_r u)‖ / ‖u‖ at r = 1/4"
        self.add("coupling.nonlinear", words, self.blocks, found)

    def _bands(self, fields: list[Field], mask: Mask | None) -> None:
        shares = [spectrum.band_shares(u, mask).nanmean(dim=0).tolist() for u in fields]
        words = "shares of ‖u‖²: mean, then four bands from low to high frequency"
        self.add("spectrum.bands", words, self.depths, shares)

    def _transfer(self) -> None:
        layers = energy.diffusion_layers(self.model_map.model)
        linear = {
            name: layer
            for name, layer in layers.items()
            if getattr(layer, "gate", None) is None
            and getattr(layer, "grid", None) is None
            and hasattr(layer, "transfer_function")
        }
        if layers and not linear:
            self.missing["spectrum.transfer"] = "no diffusion layer is linear along one dimension"
        if linear:
            device = self.activations.stream[0].device
            omega = torch.linspace(0.0, math.pi, NUM_FREQUENCIES, device=device)
            gains = [
                spectrum.transfer(each, omega).mean(dim=1).tolist() for each in linear.values()
            ]
            words = f"|H(ω)| at {NUM_FREQUENCIES} frequencies from 0 to π, features averaged"
            self.add("spectrum.transfer", words, list(linear), gains)

    def _weights(self) -> None:
        if is_large(self.model_map.model):
            self.missing["spectrum.weights"] = (
                f"more than {MANY // 10**6} million weights, and no verdict reads them; use "
                "depthpde.measures.spectrum on those you want"
            )
            return
        pairs: dict[str, list[Value]] = {"qk": [], "ov": [], "ffn": []}
        for k in range(len(self.blocks)):
            heads = self.model_map.heads(k)
            weights = {
                part: self.model_map.projection(k, part)
                for part in ("query", "key", "value", "out")
            }
            reaction = self.model_map.reaction_weights(k)
            known = [each for each in (*weights.values(), *reaction) if each is not None]
            if any(each.numel() > LARGEST_MATRIX for each in known):
                self.missing["spectrum.weights"] = (
                    f"matrices of more than {LARGEST_MATRIX:,} entries; use "
                    "depthpde.measures.spectrum on those you want"
                )
                return
            if not all(map(_is_finite, known)):
                self.missing["spectrum.weights"] = f"weights of {self.blocks[k]} are not finite"
                return
            _add_spectra(pairs, weights, reaction, heads)
        words = {
            "qk": "largest singular value of W_qᵀ W_k / √head_dim, each head",
            "ov": "largest singular value of W_o W_v, each head",
            "ffn": "largest singular value of each feed-forward matrix",
        }
        for name, values in pairs.items():
            if len(values) == len(self.blocks):
                self.add(f"spectrum.{name}", words[name], self.blocks, values)
            else:
                self.missing[f"spectrum.{name}"] = "no module of the block shows these weights"

    def _lyapunov(self, fields: list[Field], mask: Mask | None) -> None:
        """Carry tangents through the blocks of a few sequences."""
        own = [each.parts for each in self.model_map.blocks if isinstance(each.parts, OwnBlock)]
        heads = sum(getattr(block.attention, "heads", 0) for block in own)
        few = min(MOST_TANGENTS, TANGENT_BUDGET // max(heads * fields[0].shape[1] ** 2, 1))
        why = ""
        if len(own) < len(self.blocks):
            why = "a block of another library cannot be called alone on another field"
        elif any(isinstance(block.attention, Recurrence) for block in own):
            why = "torch does not differentiate an LSTM twice"
        elif fields[0].dtype not in (torch.float32, torch.float64):
            why = f"tangents need fields of 32 bits or more, these are {fields[0].dtype}"
        elif not all(bool(real_tokens(u, mask).isfinite().all()) for u in fields):
            why = "the field is not finite"
        elif few == 0:
            why = f"{fields[0].shape[1]} sites are too many to differentiate attention twice"
        if why:
            self.missing["lyapunov"] = why
            return
        u, valid = fields[0], mask
        if valid is not None:
            some = valid.any(dim=1)  # a sequence of padding alone stretches nothing
            u, valid = real_field("u", u, valid)[some][:few], valid[some][:few]
        maps = [partial(_advance, block, valid) for block in own]
        spectra = lyapunov.lyapunov_spectrum(maps, u[:few], exponents=1, rounds=3, valid_mask=valid)
        words = "log of what each block stretches the direction by that grows most through all"
        growth = spectra.growth[:, :, 0].mean(dim=1)
        self.add("lyapunov.largest", words, self.blocks, growth.tolist())
        norms = lyapunov.jacobian_norms(maps, u[:few], iterations=8, valid_mask=valid).norms
        words = "‖J_l‖: the most that a block stretches any small change"
        self.add("lyapunov.jacobian_norm", words, self.blocks, norms.mean(dim=1).tolist())


def _advance(block: OwnBlock, mask: Mask | None, u: Field) -> Field:
    out: Field = block(u, mask)
    return out


def _attend(attention: nn.Module, mask: Mask | None, u: Field) -> Field:
    """Call what mixes the sites of a block in its own precision."""
    out: Tensor = attention(u.to(next(attention.parameters()).dtype), valid_mask=mask)
    return out.to(u.dtype)


def _add_spectra(
    pairs: dict[str, list[Value]],
    weights: dict[str, Tensor | None],
    reaction: list[Tensor],
    heads: int,
) -> None:
    query, key, value, out = (weights[part] for part in ("query", "key", "value", "out"))
    if heads and query is not None and key is not None:
        groups = key.shape[0] * heads // query.shape[0]
        largest = spectrum.qk_spectrum(query, key, heads, key_heads=groups)[:, 0]
        pairs["qk"].append(largest.tolist())
        if value is not None and out is not None:
            largest = spectrum.ov_spectrum(value, out, heads, value_heads=groups)[:, 0]
            pairs["ov"].append(largest.tolist())
    if reaction:
        pairs["ffn"].append([spectrum.largest_singular_value(each) for each in reaction])


def live_share(increment: Field, u: Field, mask: Mask | None) -> float:
    """Measure what a term adds that differs between tokens, against how the stream differs.

        ‖F − F̄‖ / ‖u − ū‖,    bars: the mean over all real tokens of the batch

    Zero for a term that adds nothing, or the same to every token; NaN where all tokens are one.
    """
    if increment.shape != u.shape:
        return float("nan")
    added, there = (real_tokens(each, mask) for each in (increment, u))
    change, spread = (vector_norm(each - each.mean(dim=0)) for each in (added, there))
    varies = spread > 64 * torch.finfo(there.dtype).eps * vector_norm(there)
    return float(change / spread) if varies else float("nan")


def _is_finite(weight: Tensor) -> bool:
    """Tell whether every entry is finite: a finite sum proves it, and makes no copy."""
    return bool(weight.sum().isfinite()) or bool(weight.isfinite().all())


def _means(rows: Sequence[Tensor]) -> list[Value]:
    return [mean_over_batch(each) for each in rows]


def _per_head(values: Tensor) -> list[float]:
    averaged: list[float] = values.nanmean(dim=0).tolist()
    return averaged


def _some_tokens(u: Field, mask: Mask | None, most: int) -> Tensor:
    tokens = real_tokens(u, mask)
    if len(tokens) <= most:
        return tokens
    chosen = torch.linspace(0, len(tokens) - 1, most, device=u.device).long()
    return tokens[chosen]
