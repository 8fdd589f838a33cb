"""GPT-2 (Radford et al. 2019): attention with learned positions."""

from typing import Any

from foveal.config import ModelConfig
from foveal.core.errors import UserError
from foveal.interop.huggingface.checks import ACTIVATIONS
from foveal.interop.huggingface.family import NORM_EPSILON, ModelFamily, transposed, unchanged
from foveal.interop.huggingface.hf_config import HFConfig
from foveal.layers.mixers.self_attention import AttentionSpec
from foveal.models.mixer_settings import settings_of


def from_hf_config(settings: HFConfig) -> tuple[dict[str, Any], int]:
    """Return the tables of a `ModelConfig`, and the context length."""
    settings.require("layer_norm_epsilon", NORM_EPSILON)
    settings.require("scale_attn_weights", True)
    settings.require("scale_attn_by_inverse_layer_idx", False)
    settings.require("add_cross_attention", False)
    width = settings.size("n_embd", 768)
    return {
        "mixers": "attention",
        "layers": settings.size("n_layer", 12),
        "width": width,
        "attention": {"heads": settings.size("n_head", 12)},
        "positions": {"kind": "learned"},
        "feedforward": "mlp",
        "expansion": settings.size("n_inner", 4 * width) / width,
        "activation": settings.choice("activation_function", "gelu_new", ACTIVATIONS),
        "norm": "layer",
        "residual": True,
        "dropout": settings.fraction("resid_pdrop", 0.1),
        "tie_embeddings": settings.boolean("tie_word_embeddings", True),
        "projection_bias": False,
    }, settings.size("n_positions", 1024)


def to_hf_config(config: ModelConfig, context: int) -> dict[str, Any]:
    """Return the settings of a config.json.

    Raises: UserError: GPT-2 has no such activation function.
    """
    names = {name: hf_name for hf_name, name in reversed(ACTIVATIONS.items())}
    if config.activation not in names:
        raise UserError(f"model.activation={config.activation}: GPT-2 can have only {', '.join(names)}")
    return {
        "n_layer": config.layers,
        "n_embd": config.width,
        "n_head": settings_of(config, AttentionSpec).heads,
        "n_inner": round(config.expansion * config.width),
        "n_positions": context,
        "activation_function": names[config.activation],
        "layer_norm_epsilon": NORM_EPSILON,
        "resid_pdrop": config.dropout,
        "embd_pdrop": 0.0,
        "attn_pdrop": 0.0,
    }


GPT2 = ModelFamily(
    model_type="gpt2",
    architecture="GPT2LMHeadModel",
    mixer="attention",
    norm_placement="pre",
    prefix="transformer.",
    embedding="wte.weight",
    head="lm_head.weight",
    layers="h",
    blocks=1,
    top_level={
        "wpe.weight": unchanged("stack.positioned.position.table"),
        "ln_f.weight": unchanged("norm.gain"),
        "ln_f.bias": unchanged("norm.bias"),
    },
    per_layer={
        "ln_1.weight": unchanged("{first}.mixer_norm.gain"),
        "ln_1.bias": unchanged("{first}.mixer_norm.bias"),
        "attn.c_attn.weight": transposed(*(f"{{first}}.mixer.{p}.weight" for p in ("query", "key", "value"))),
        "attn.c_attn.bias": unchanged(*(f"{{first}}.mixer.{p}.bias" for p in ("query", "key", "value"))),
        "attn.c_proj.weight": transposed("{first}.mixer.output.weight"),
        "attn.c_proj.bias": unchanged("{first}.mixer.output.bias"),
        "ln_2.weight": unchanged("{first}.feedforward_norm.gain"),
        "ln_2.bias": unchanged("{first}.feedforward_norm.bias"),
        "mlp.c_fc.weight": transposed("{first}.feedforward.expand.weight"),
        "mlp.c_fc.bias": unchanged("{first}.feedforward.expand.bias"),
        "mlp.c_proj.weight": transposed("{first}.feedforward.contract.weight"),
        "mlp.c_proj.bias": unchanged("{first}.feedforward.contract.bias"),
    },
    ignored_settings=frozenset(),
    from_hf_config=from_hf_config,
    to_hf_config=to_hf_config,
)
