"""The 52 faults of the exam, as data: component, name, strengths, and the function that makes it.

A fault takes a model that works and makes it wrong in place, on any family that the doctor knows:
weights by the family's description, attention by what it hands to torch's kernel, the cache by what
it is updated with. A fault that a family cannot have (segments without segment embeddings) says so.
"""

from __future__ import annotations

from doctor import fault_attention, fault_cache, fault_weights
from doctor.exam_patient import Fault

THIRDS, GAINS = (0.1, 0.3, 0.5), (0.5, 2.0, 5.0)
FAULTS = [
    Fault("masking", "mask all zero", ("",), fault_attention.mask_zero),
    Fault("masking", "mask inverted", ("",), fault_attention.mask_inverted),
    Fault(
        "masking",
        "mask broadcast along the wrong axis",
        ("batch", "head"),
        fault_attention.mask_broadcast,
    ),
    Fault("masking", "share of future keys open", THIRDS, fault_attention.future_open),
    Fault("q, k, v", "query weights zero", ("",), fault_weights.zero_projection("query")),
    Fault("q, k, v", "key weights zero", ("",), fault_weights.zero_projection("key")),
    Fault("q, k, v", "value weights zero", ("",), fault_weights.zero_projection("value")),
    Fault("q, k, v", "query and key swapped", ("",), fault_weights.swap_query_key),
    Fault("q, k, v", "heads tied", ("first half", "alternating", "all"), fault_weights.tie_heads),
    Fault(
        "q, k, v", "frozen or unregistered", ("frozen", "unregistered"), fault_weights.not_learning
    ),
    Fault(
        "q, k, v",
        "heads split wrongly",
        ("half", "double", "single"),
        fault_attention.split_wrongly,
    ),
    Fault("score", "1/√d dropped", ("",), fault_attention.scale_dropped),
    Fault(
        "score", "dropout on scores before softmax", THIRDS, fault_attention.dropout_before_softmax
    ),
    Fault("score", "scores in half precision", ("",), fault_attention.half_scores),
    Fault("positions", "none", ("",), fault_weights.positions_none),
    Fault("positions", "indices shifted", (1, 2, 4), fault_weights.positions_shifted),
    Fault("positions", "truncated", (0.25, 0.5, 0.75), fault_weights.positions_truncated),
    Fault("kernel", "slow backend forced", ("",), fault_attention.slow_backend),
    Fault("kernel", "dropout differs in kernel and model", THIRDS, fault_attention.kernel_dropout),
    Fault("kernel", "fallback by dtype", ("",), fault_attention.dtype_fallback),
    Fault("kernel", "reduced-precision accumulation", ("",), fault_attention.reduced_accumulation),
    Fault("kernel", "chunked path", ("",), fault_attention.chunked),
    Fault("variant", "one effective head", ("",), fault_attention.one_head),
    Fault("variant", "causal mask in an encoder", ("",), fault_attention.causal_encoder),
    Fault("KV cache", "stale", ("first", "middle", "last", "all"), fault_cache.cache_stale),
    Fault("KV cache", "current step withheld", ("",), fault_cache.cache_withheld),
    Fault("KV cache", "off by one", (-1, 1), fault_cache.cache_off_by_one),
    Fault("KV cache", "truncated", (4, 8, 16), fault_cache.cache_truncated),
    Fault("KV cache", "leaks across requests", ("",), fault_cache.cache_across),
    Fault("embedding", "share of rows zero", THIRDS, fault_weights.embedding_rows_zero),
    Fault("embedding", "pairs of rows swapped", THIRDS, fault_weights.embedding_rows_swapped),
    Fault("embedding", "segment embeddings scaled", GAINS, fault_weights.segments_scaled),
    Fault("embedding", "block of features zero", THIRDS, fault_weights.embedding_features_zero),
    Fault("feed-forward", "weights scaled", GAINS, fault_weights.reaction_scaled),
    Fault("feed-forward", "neurons dropped for good", THIRDS, fault_weights.neurons_dropped),
    Fault("feed-forward", "other activation", ("",), fault_weights.other_activation),
    Fault(
        "feed-forward", "other weight decay", (0.5, 5.0), fault_weights.other_decay("feed-forward")
    ),
    Fault(
        "feed-forward",
        "other initialisation",
        ("zeros", "uniform", "ones"),
        fault_weights.reaction_initialised,
    ),
    Fault("norm", "gain scaled", GAINS, fault_weights.norm_scaled),
    Fault("norm", "gain zero", ("",), fault_weights.norm_zero),
    Fault("norm", "shift added", (0.5, 1.0, 2.0), fault_weights.norm_shifted),
    Fault("norm", "epsilon", (1e-4, 1e-2, 1.0), fault_weights.norm_epsilon),
    Fault("norm", "weight decay on gain and bias", (0.5, 5.0), fault_weights.other_decay("norm")),
    Fault("residual", "bypassed", ("",), fault_weights.residual_bypassed),
    Fault("residual", "scaled", GAINS, fault_weights.residual_scaled),
    Fault("residual", "noise", (0.01, 0.1, 1.0), fault_weights.residual_noise),
    Fault("residual", "clipped", (0.1, 1.0, 10.0), fault_weights.residual_clipped),
    Fault("residual", "dropout", THIRDS, fault_weights.residual_dropout),
    Fault("output", "logits scaled", GAINS, fault_weights.logits_scaled),
    Fault("output", "rows zero for some classes", THIRDS, fault_weights.classes_zero),
    Fault(
        "output", "re-initialised", ("zeros", "xavier", "kaiming"), fault_weights.head_initialised
    ),
    Fault("output", "wrong width", (1, 3), fault_weights.head_width),
]
"""Strengths that name lengths are shares of the exam's own sequences, which are short."""
