"""Gemma 3 (Gemma Team 2025), its text models: shared heads of keys, norms on both sides, windows."""

from typing import Any

from foveal.config import ModelConfig
from foveal.interop.huggingface.family import ModelFamily, plus_one, unchanged
from foveal.interop.huggingface.hf_config import HFConfig
from foveal.layers.mixers.self_attention import AttentionSpec
from foveal.models.mixer_settings import settings_of

LOCAL, GLOBAL = "sliding_attention", "full_attention"
"""The types of layers: with a window, and without."""
LOCAL_BASE, GLOBAL_BASE = 10_000.0, 1_000_000.0
"""Bases of rotary positions in these layers."""
WIDTH_RATIO = 1.5
"""The width of a GeGLU is two thirds of `model.expansion`."""


def from_hf_config(settings: HFConfig) -> tuple[dict[str, Any], int]:
    """Return the tables of a `ModelConfig`, and the context length."""
    for key in ("attn_logit_softcapping", "final_logit_softcapping", "rope_scaling"):
        settings.require(key, None)
    settings.require("attention_bias", False)
    settings.require("use_bidirectional_attention", False)
    settings.require("hidden_activation", "gelu_pytorch_tanh")
    width, head_width = settings.size("hidden_size", 2304), settings.size("head_dim", 256)
    if settings.size("query_pre_attn_scalar", 256) != head_width:
        raise settings.error("query_pre_attn_scalar", f"Foveal supports only head_dim={head_width}")
    layers, heads = settings.size("num_hidden_layers", 26), settings.size("num_attention_heads", 8)
    key_heads, every = settings.size("num_key_value_heads", 4), _global_every(settings, layers)
    attention: dict[str, Any] = {
        "heads": heads,
        "key_heads": 0 if key_heads == heads else key_heads,
        "head_width": 0 if heads * head_width == width else head_width,
        "qk_norm": True,
        "bias": False,
        "window": settings.size("sliding_window", 4096),
    }
    if every:
        base = _rotary_base(settings, GLOBAL, "rope_theta", GLOBAL_BASE)
        attention |= {"global_every": every, "global_rotary_base": base}
    return {
        "mixers": "attention",
        "layers": layers,
        "width": width,
        "embedding_scale": True,
        "attention": attention,
        "positions": {
            "kind": "rotary",
            "rotary_base": _rotary_base(settings, LOCAL, "rope_local_base_freq", LOCAL_BASE),
        },
        "feedforward": "geglu",
        "expansion": WIDTH_RATIO * settings.size("intermediate_size", 9216) / width,
        "norm": "rms",
        "norm_placement": "both",
        "norm_epsilon": settings.positive("rms_norm_eps", 1e-6),
        "residual": True,
        "tie_embeddings": settings.boolean("tie_word_embeddings", True),
        "projection_bias": False,
    }, settings.size("max_position_embeddings", 131_072)


def _global_every(settings: HFConfig, layers: int) -> int:
    """Return n if every n-th layer has no window, 0 if all have one.

    Raises: UserError: the layers without a window are others.
    """
    usual = layer_types(layers, settings.size("sliding_window_pattern", 6))
    types = settings.get("layer_types", usual)
    every = types.index(GLOBAL) + 1 if isinstance(types, list) and GLOBAL in types else 0
    if types != layer_types(layers, every):
        reason = f"Foveal supports only {layers} layers with windows in all but every n-th"
        raise settings.error("layer_types", reason)
    return every


def layer_types(layers: int, every: int) -> list[str]:
    """Return the type of each layer. Every n-th has no window, none if `every` is 0."""
    return [GLOBAL if every and number % every == 0 else LOCAL for number in range(1, layers + 1)]


def _rotary_base(settings: HFConfig, layer_type: str, old_key: str, default: float) -> float:
    """Return the base of rotary positions of a type of layers, which older files have under `old_key`."""
    own = settings.section("rope_parameters").section(layer_type)
    own.require("rope_type", "default")
    return own.positive("rope_theta", settings.positive(old_key, default))


def to_hf_config(config: ModelConfig, context: int) -> dict[str, Any]:
    """Return the settings of a config.json."""
    attention = settings_of(config, AttentionSpec)
    local_base = config.positions.rotary_base
    bases = {LOCAL: local_base, GLOBAL: attention.global_rotary_base or local_base}
    return {
        "num_hidden_layers": config.layers,
        "hidden_size": config.width,
        "num_attention_heads": attention.heads,
        "num_key_value_heads": attention.key_heads or attention.heads,
        "head_dim": attention.head_width or config.width // attention.heads,
        "query_pre_attn_scalar": attention.head_width or config.width // attention.heads,
        "sliding_window": attention.window or context,
        "layer_types": layer_types(config.layers, attention.global_every),
        "rope_parameters": {
            name: {"rope_type": "default", "rope_theta": base} for name, base in bases.items()
        },
        "intermediate_size": round(config.expansion * config.width / WIDTH_RATIO),
        "hidden_activation": "gelu_pytorch_tanh",
        "attention_bias": False,
        "attention_dropout": 0.0,
        "rms_norm_eps": config.norm_epsilon,
        "max_position_embeddings": context,
    }


GEMMA3 = ModelFamily(
    model_type="gemma3_text",
    architecture="Gemma3ForCausalLM",
    mixer="attention",
    norm_placement="both",
    prefix="model.",
    embedding="embed_tokens.weight",
    head="lm_head.weight",
    layers="layers",
    blocks=1,
    top_level={"norm.weight": plus_one("norm.gain")},
    per_layer={
        "input_layernorm.weight": plus_one("{first}.mixer_norm.gain"),
        "self_attn.q_proj.weight": unchanged("{first}.mixer.query.weight"),
        "self_attn.k_proj.weight": unchanged("{first}.mixer.key.weight"),
        "self_attn.v_proj.weight": unchanged("{first}.mixer.value.weight"),
        "self_attn.o_proj.weight": unchanged("{first}.mixer.output.weight"),
        "self_attn.q_norm.weight": plus_one("{first}.mixer.query_norm.gain"),
        "self_attn.k_norm.weight": plus_one("{first}.mixer.key_norm.gain"),
        "post_attention_layernorm.weight": plus_one("{first}.mixer_output_norm.gain"),
        "pre_feedforward_layernorm.weight": plus_one("{first}.feedforward_norm.gain"),
        "mlp.gate_proj.weight": unchanged("{first}.feedforward.gate.weight"),
        "mlp.up_proj.weight": unchanged("{first}.feedforward.expand.weight"),
        "mlp.down_proj.weight": unchanged("{first}.feedforward.contract.weight"),
        "post_feedforward_layernorm.weight": plus_one("{first}.feedforward_output_norm.gain"),
    },
    ignored_settings=frozenset({"dropout", "activation", "attention.global_rotary_base"}),
    from_hf_config=from_hf_config,
    to_hf_config=to_hf_config,
)
