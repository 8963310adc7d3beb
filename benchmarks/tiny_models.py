"""Every architecture of the installed transformers, from a tiny config, with a tiny batch.

Sizes are known by the names that configs give them; a config's own defaults fill the rest. What
cannot be built so is listed with its error, not left out.
"""

from __future__ import annotations

import contextlib
import copy
import importlib
import inspect
import logging
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import nn

KINDS = {
    "causal": "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES",
    "masked": "MODEL_FOR_MASKED_LM_MAPPING_NAMES",
    "seq2seq": "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES",
    "speech": "MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES",
    "vision": "MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES",
    "audio": "MODEL_FOR_AUDIO_CLASSIFICATION_MAPPING_NAMES",
}
WIDTH, HEADS, WORDS, ROWS, LENGTH = 32, 4, 96, 2, 8

SIZES: dict[str, Any] = {
    **dict.fromkeys(
        ("hidden_size", "d_model", "n_embd", "dim", "embed_dim", "hidden_dim", "embedding_size",
         "embedding_dim", "encoder_hidden_size", "decoder_hidden_size", "attention_hidden_size",
         "lru_width", "word_embed_proj_dim", "dim_model", "emb_dim"), WIDTH),
    **dict.fromkeys(
        ("intermediate_size", "d_ff", "ffn_dim", "encoder_ffn_dim", "decoder_ffn_dim", "n_inner",
         "ffn_hidden_size", "dim_ff", "dff", "shared_expert_intermediate_size", "ffn_embed_dim"),
        64),
    **dict.fromkeys(
        ("num_hidden_layers", "n_layer", "num_layers", "n_layers", "encoder_layers",
         "decoder_layers", "num_decoder_layers", "num_encoder_layers", "num_blocks"), 2),
    **dict.fromkeys(
        ("num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads",
         "decoder_attention_heads", "num_encoder_attention_heads",
         "num_decoder_attention_heads"), HEADS),
    **dict.fromkeys(("num_key_value_heads", "num_kv_heads", "multi_query_group_num"), 2),
    **dict.fromkeys(("vocab_size", "n_vocab", "src_vocab_size", "tgt_vocab_size",
                     "vocab_size_per_layer_input"), WORDS),
    **dict.fromkeys(("head_dim", "d_kv", "dim_head", "qk_nope_head_dim", "qk_rope_head_dim",
                     "v_head_dim", "attention_head_dim", "rotary_dim", "global_head_dim",
                     "qkv_channels"), 8),
    **dict.fromkeys(("q_lora_rank", "kv_lora_rank", "o_lora_rank"), 8),
    **dict.fromkeys(("num_experts", "n_routed_experts", "num_local_experts", "moe_num_experts"), 4),
    **dict.fromkeys(("num_experts_per_tok", "moe_k", "moe_topk", "top_k_experts"), 2),
    **dict.fromkeys(("moe_intermediate_size", "expert_intermediate_size",
                     "expert_ffn_hidden_size", "moe_ffn_hidden_size"), 32),
    **dict.fromkeys(("n_group", "topk_group", "n_shared_experts", "first_k_dense_replace",
                     "moe_layer_start_index", "num_nextn_predict_layers"), 1),
    **dict.fromkeys(("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len",
                     "max_source_positions", "max_target_positions", "block_size",
                     "max_sequence_length", "context_length"), 64),
    **dict.fromkeys(("sliding_window", "attention_window_size", "window_size_left"), 32),
    "image_size": 32, "patch_size": 8, "num_mel_bins": 16, "hidden_size_per_layer_input": 8,
    "type_vocab_size": 2, "state_size": 8, "mamba_d_state": 8, "mamba_n_heads": 8,
    "mamba_d_head": 8, "mamba_head_dim": 8, "mamba_num_heads": 8, "ssm_state_size": 8,
    "time_step_rank": 4, "mamba_dt_rank": 4, "num_labels": 3, "linear_key_head_dim": 8,
    "linear_value_head_dim": 8, "linear_num_key_heads": 2, "linear_num_value_heads": 4,
    "use_mamba_kernels": False, "kernel_size": 3, "use_cache": True, "layerdrop": 0.0,
    "encoder_layerdrop": 0.0, "decoder_layerdrop": 0.0, "drop_path_rate": 0.0,
    "attention_window": 4, "num_kv_shared_layers": 0, "index_head_dim": 8,
    "index_n_heads": 4, "index_topk": 64, "mamba_chunk_size": 8, "speech_encoder_layers": 2,
    "speech_encoder_attention_heads": HEADS, "speech_encoder_intermediate_size": 64,
}  # fmt: skip
"""By the names that configs use."""
SOUND = {"conv_dim": [16, 16], "conv_kernel": [4, 4], "conv_stride": [4, 2]}
VOICE = {"num_filters": 4, "downsampling_ratios": [2, 2], "depths": [1, 1, 1]}
OWN: dict[str, dict[str, Any]] = {
    "mamba2": {"num_heads": 8, "head_dim": 8, "n_groups": 1, "expand": 2, "chunk_size": 8},
    "wav2vec2": SOUND,
    "reformer": {"axial_pos_shape": [8, 8], "axial_pos_embds_dim": [8, 24],
                 "attn_layers": ["local", "lsh"], "num_buckets": 4},
    "swin": {"embed_dim": 16, "depths": [1, 1], "num_heads": [2, 4], "window_size": 2,
             "patch_size": 4},
    "dots1": {"n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2},
    "donut-swin": {"embed_dim": 16, "depths": [1, 1], "num_heads": [2, 4], "window_size": 2,
                   "patch_size": 4},
    "convnext": {"patch_size": 4, "hidden_sizes": [8, 16, 16, 32], "depths": [1, 1, 2, 1]},
    "resnet": {"hidden_sizes": [8, 16, 16, 32], "depths": [1, 1, 2, 1], "embedding_size": 8},
    "regnet": {"hidden_sizes": [8, 16, 16, 32], "depths": [1, 1, 2, 1], "groups_width": 8},
    "bit": {"hidden_sizes": [8, 16, 16, 32], "depths": [1, 1, 2, 1], "num_groups": 2},
    "poolformer": {"hidden_sizes": [8, 16, 16, 32], "depths": [1, 1, 2, 1]},
    "pvt": {"hidden_sizes": [8, 16, 20, 32], "depths": [1, 1, 2, 1]},
    "cvt": {"embed_dim": [8, 12, 24], "depth": [1, 2, 3]},
    "textnet": {"hidden_sizes": [8, 8, 16, 16, 32], "stem_out_channels": 8, "image_size": [64, 64]},
    "hgnet_v2": {"stem_channels": [3, 8, 8], "stage_in_channels": [8, 8, 16, 16],
                 "stage_mid_channels": [8, 8, 8, 8], "stage_out_channels": [8, 16, 16, 32],
                 "hidden_sizes": [8, 16, 16, 32], "stage_numb_of_layers": [2, 2, 2, 2]},
    **dict.fromkeys(("hubert", "wavlm", "unispeech", "data2vec-audio", "speecht5"), SOUND),
    "roc_bert": {"shape_vocab_size": WORDS, "shape_embed_dim": 16,
                 "pronunciation_vocab_size": WORDS, "pronunciation_embed_dim": 16},
    "efficientnet": {"width_coefficient": 0.25, "depth_coefficient": 0.1, "hidden_dim": 320},
    "levit": {"drop_path_rate": 0, "image_size": 64, "patch_size": 16},
    "mobilevitv2": {"patch_size": 2, "image_size": 64},
    "mobilevit": {"hidden_sizes": [32, 32, 32], "neck_hidden_sizes": [8, 8, 16, 16, 16, 16, 32]},
    "perceiver": {"d_latents": 32, "num_latents": 8, "num_self_attends_per_block": 2,
                  "num_cross_attention_heads": 4, "num_self_attention_heads": 4},
    "gpt_neo": {"attention_types": [[["global", "local"], 1]]},
    "xmod": {"languages": ["en_XX"], "default_language": "en_XX"},
    "esm": {"vocab_size": WORDS, "mask_token_id": 4},
    "luke": {"entity_vocab_size": WORDS, "entity_emb_size": WIDTH},
    "neomme": {"head_dim": 16},
    "musicgen": {"num_codebooks": 1},
    "zaya": {"num_experts_per_tok": 1},
    "dbrx": {"attn_config": {"rope_theta": 1e4, "kv_n_heads": 2, "clip_qkv": 8}},
    "bailing_hybrid": {
        "layer_types": ["linear_attention", "full_attention"], "num_key_value_heads": 4,
        "n_group": 1, "topk_group": 1,
        "num_experts": 4, "num_experts_per_tok": 2,
    },
    "kimi_linear": {
        "layer_types": ["linear_attention", "full_attention"], "num_key_value_heads": 4,
        "num_experts": 4,
        "num_experts_per_token": 2, "num_experts_per_tok": 2, "num_expert_group": 1,
        "linear_head_dim": 8, "linear_num_heads": 4,
    },
    "qwen4_exp": {
        "layer_types": ["linear_attention", "full_attention"], "indexer_n_heads": 4,
        "indexer_kv_heads": 1, "indexer_head_dim": 8, "indexer_budget": 64,
        "indexer_compress_ratio": 4,
    },
    "cohere_compass_text": {
        "rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 1e4}},
        "layer_types": ["full_attention", "full_attention"],
    },
    "speech_to_text": {
        "input_feat_per_channel": 16, "conv_channels": 16, "max_source_positions": 64
    },
    "deepseek_v2": {"num_key_value_heads": 4, "num_experts_per_tok": 2},
    "zamba2": {"num_hidden_layers": 4, "attention_hidden_size": 64, "attention_head_dim": 16,
        "chunk_size": 8, "layers_block_type": ["mamba", "hybrid", "mamba", "hybrid"]},
    "zamba": {"num_hidden_layers": 4, "attention_hidden_size": 64, "attention_head_dim": 16,
        "layers_block_type": ["mamba", "hybrid", "mamba", "hybrid"]},
    "shieldgemma2": {"yes_token_index": 5, "no_token_index": 6},
    "moonshine_streaming": {"num_key_value_heads": 4},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"], "num_dense_layers": 1},
    "bamba": {"attn_layer_indices": [1], "mamba_n_groups": 1},
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1, "expert_layer_period": 2},
    "granitemoehybrid": {"layer_types": ["mamba", "attention"], "mamba_n_groups": 1},
    "rwkv": {"attention_hidden_size": WIDTH},
    "xlstm": {"hidden_size": 64, "embedding_dim": 64, "qk_dim_factor": 1.0},
    "blt": {"num_hidden_layers": 2,
            "encoder_hash_byte_group_vocab": WORDS, "encoder_hash_byte_group_size": [3, 4],
            "encoder_config": {"hidden_size_global": WIDTH},
            "decoder_config": {"hidden_size_global": WIDTH}},
    "dia": {"decoder_config": {"cross_num_attention_heads": 4, "cross_num_key_value_heads": 4,
                               "cross_head_dim": 8, "cross_hidden_size": WIDTH}},
    "fun_asr_nano": {"adaptor_config": {"intermediate_size": 8, "projector_hidden_size": 32},
                     "audio_config": {"num_timestamp_prediction_layers": 1}},
    "nemo_speechlm": {
        "audio_config": {"diarization_config": {"head_config": {"audio_hidden_size": WIDTH}}},
        "text_config": {"layers_block_type": ["linear_attention", "full_attention", "moe"]},
    },
    "kyutai_speech_to_text": {
        "codec_config": {"upsample_groups": 8, "num_filters": 4, "codebook_dim": 8,
                         "vector_quantization_hidden_dimension": 8, "codebook_size": 32},
        "codebook_vocab_size": 33, "num_codebooks": 2,
    },
    "musicflamingo": {"audio_config": {"model_type": "audioflamingo3_encoder"},
                      "text_config": {"model_type": "qwen2"}},
    "vibevoice_asr": {"acoustic_tokenizer_encoder_config": VOICE,
                      "semantic_tokenizer_encoder_config": VOICE},
    "vibevoice": {"audio_config": VOICE, "semantic_model_config": VOICE,
                  "diffusion_head_config": {"latent_size": WIDTH}},
}  # fmt: skip
"""What one type needs beside; also for types whose name begins so."""
MOST_WEIGHTS = 30_000_000


def model_types() -> Iterator[tuple[str, str, str]]:
    """Give kind, type and class name of everything that the library's tables list."""
    auto = importlib.import_module("transformers.models.auto.modeling_auto")
    for kind, table in KINDS.items():
        for name, classes in getattr(auto, table).items():
            yield kind, name, classes if isinstance(classes, str) else classes[0]


VARIANTS: tuple[dict[str, Any], ...] = (
    {},
    {"num_key_value_heads": HEADS},
    {"num_hidden_layers": 4},
    {"num_hidden_layers": 8},
    {"head_dim": 8},
    {"head_dim": 8, "num_hidden_layers": 8},
    {"n_routed_experts": 4},
    {"mamba_expand": 2, "mamba_n_heads": 8, "mamba_d_ssm": 64, "mamba_n_groups": 1},
)
"""Tried in turn until a model takes its batch: hybrids show every kind of block in eight only."""


def build(kind: str, name: str, class_name: str) -> tuple[nn.Module, dict[str, torch.Tensor]]:
    """Build one tiny model that takes its batch.

    Args:
        kind: Of the table.
        name: The model type.
        class_name: Of the model.
    """
    import transformers

    first: Exception | None = None
    with quiet_library():
        model_class = getattr(transformers, class_name)
        for variant in VARIANTS:
            try:
                config = tiny_config(model_class.config_class, name, variant)
                if kind == "causal" and hasattr(config, "is_decoder"):
                    config.is_decoder = True
                if kind in ("seq2seq", "speech") and hasattr(
                    getattr(config, "decoder", None), "is_decoder"
                ):
                    config.decoder.is_decoder = config.decoder.add_cross_attention = True
                _check_tiny(model_class, config)
                torch.manual_seed(0)
                model = model_class(config).eval()
                batch = tiny_batch(kind, model, config)
                with torch.no_grad():
                    model(**batch)
            except Exception as error:  # anything may be wrong with a config that nobody wrote
                first = first or error
                continue
            return model, batch
    raise ValueError(f"{type(first).__name__}: {first}") from first


def _check_tiny(model_class: Any, config: Any) -> None:
    """Refuse a model whose sizes have names that are not known here."""
    with torch.device("meta"):
        count = sum(each.numel() for each in model_class(copy.deepcopy(config)).parameters())
    if count > MOST_WEIGHTS:
        raise ValueError(f"not tiny: {count / 1e6:.0f} million weights")


def tiny_config(config_class: Any, name: str, variant: dict[str, Any]) -> Any:
    """Build a config with every size that is known by its name made small."""
    own = next((value for key, value in OWN.items() if name.startswith(key)), {})
    known = vars(config_class())
    extra = {key: value for key, value in variant.items() if key in known}
    if variant and not extra:
        raise ValueError("the variant changes nothing")
    return config_class(**_merged(_tiny_values(config_class()), own | extra))


def _merged(values: dict[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Put a type's own sizes over the general ones; those of a part of it into that part."""
    merged = dict(values)
    for key, value in own.items():
        inner = isinstance(value, dict) and isinstance(values.get(key), dict)
        merged[key] = _merged(values[key], value) if inner else value
    return merged


def _tiny_values(default: Any) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in vars(default).items():
        if hasattr(value, "to_dict") and hasattr(value, "model_type"):
            values[key] = _tiny_values(value)
        elif key in SIZES and (value is not None and not isinstance(value, list | tuple | dict)):
            values[key] = SIZES[key]
        elif key.endswith(("_token_id", "_token_index")) and isinstance(value, int):
            values[key] = value if 0 <= value < 4 else WORDS - 1 - len(values) % 16
    for key in ("num_hidden_layers", "num_attention_heads"):
        if key in getattr(default, "attribute_map", {}):
            values.pop(key, None)
    for key, value in {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}.items():
        if key in values or hasattr(default, key):
            values[key] = value
    if "decoder_start_token_id" in values:
        values["decoder_start_token_id"] = 2
    return values


def tiny_batch(kind: str, model: nn.Module, config: Any) -> dict[str, torch.Tensor]:
    """Draw two rows of what a kind of model is called with."""
    takes = inspect.signature(model.forward).parameters
    draw = torch.Generator().manual_seed(0)
    ids = torch.randint(5, 60, (ROWS, LENGTH), generator=draw)
    decodes = getattr(config, "is_encoder_decoder", False) and "decoder_input_ids" in takes
    if config.model_type == "voxtral_realtime":  # eight frames of sound for each token
        sound = torch.randn(ROWS, config.audio_config.num_mel_bins, 8 * LENGTH, generator=draw)
        return {"input_ids": ids, "input_features": sound}
    if config.model_type == "kyutai_speech_to_text":  # a word and its codes at each site
        codes = torch.randint(0, 32, (ROWS, LENGTH, config.num_codebooks), generator=draw)
        return {"input_ids": torch.cat([ids[..., None], codes], dim=-1)}
    if kind == "causal" or (kind == "masked" and not decodes):
        return {"input_ids": ids}
    if kind in ("masked", "seq2seq"):
        return {"input_ids": ids, "decoder_input_ids": ids[:, :6].flip(0)}
    if kind == "vision" and "spatial_shapes" in takes:
        return {
            "pixel_values": torch.randn(ROWS, 16, 3 * 8 * 8, generator=draw),
            "pixel_attention_mask": torch.ones(ROWS, 16, dtype=torch.long),
            "spatial_shapes": torch.full((ROWS, 2), 4),
        }
    if "input_ids" in takes and (kind == "vision" or (kind == "speech" and not decodes)):
        return {"input_ids": ids}
    if kind == "vision":
        size = getattr(config, "image_size", 32)
        height, width = (size, size) if isinstance(size, int) else (size[0], size[-1])
        channels = getattr(config, "num_channels", 3)
        return {"pixel_values": torch.randn(ROWS, channels, height, width, generator=draw)}
    batch = _sound(model, config, takes, draw)
    if kind == "speech":
        batch["decoder_input_ids"] = ids[:, :6]
    if config.model_type == "dia":
        channels = config.decoder_config.num_channels
        batch["decoder_input_ids"] = ids[:, :6, None].expand(-1, -1, channels).contiguous()
    return batch


def _sound(
    model: nn.Module, config: Any, takes: Mapping[str, Any], draw: torch.Generator
) -> dict[str, torch.Tensor]:
    """Draw a waveform, or the frames of a spectrum in the layout that a model reads."""
    reads = getattr(getattr(model, "encoder", None), "main_input_name", None)
    names = (reads, "input_features", "input_values", "input_ids")
    name = next(str(each) for each in names if each in takes)
    if name == "input_ids":
        return {name: torch.randint(5, 60, (ROWS, LENGTH), generator=draw)}
    mel = getattr(config, "num_mel_bins", 16)
    shape: tuple[int, ...] = (ROWS, 64, mel)
    if hasattr(config, "input_feat_per_channel"):
        shape = (ROWS, 64, config.input_feat_per_channel)
    elif hasattr(config, "feature_projection_input_dim"):
        shape = (ROWS, 64, config.feature_projection_input_dim)
    elif config.model_type == "audio-spectrogram-transformer":
        shape = (ROWS, config.max_length, mel)
    elif config.model_type == "pop2piano":
        shape = (ROWS, 16, config.d_model)
    elif name == "input_values":
        shape = (ROWS, 1600)
    elif hasattr(config, "max_source_positions"):
        shape = (ROWS, mel, 2 * config.max_source_positions)
    return {name: torch.randn(shape, generator=draw)}


@contextlib.contextmanager
def quiet_library() -> Iterator[None]:
    """Keep warnings about tiny sizes to ourselves."""
    logging.getLogger("transformers").setLevel(logging.CRITICAL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
