"""RWKV, version 4 (Peng et al. 2023): a layer is two of Foveal's blocks."""

from typing import Any

from foveal.config import ModelConfig
from foveal.core.errors import UserError
from foveal.interop.huggingface.family import NORM_EPSILON, ModelFamily, broadcast_vector, unchanged
from foveal.interop.huggingface.hf_config import HFConfig


def from_hf_config(settings: HFConfig) -> tuple[dict[str, Any], int]:
    """Return the tables of a `ModelConfig`, and the context length.

    rescale_every prevents float16 overflow at inference. Files contain the unscaled weights.
    """
    settings.require("layer_norm_epsilon", NORM_EPSILON)
    width = settings.size("hidden_size", 4096)
    settings.require("attention_hidden_size", width)
    return {
        "mixers": "rwkv",
        "layers": settings.size("num_hidden_layers", 32),
        "width": width,
        "feedforward": "channel-mixing",
        "expansion": settings.size("intermediate_size", 4 * width) / width,
        "norm": "layer",
        "residual": True,
        "embedding_norm": True,
        "tie_embeddings": settings.boolean("tie_word_embeddings", False),
        "projection_bias": False,
    }, settings.size("context_length", 1024)


def to_hf_config(config: ModelConfig, context: int) -> dict[str, Any]:
    """Return the settings of a config.json.

    Raises: UserError: the model has a single layer.
    """
    if config.layers == 1:
        raise UserError("model.layers=1: transformers can't open an rwkv with fewer than two layers")
    return {
        "num_hidden_layers": config.layers,
        "hidden_size": config.width,
        "attention_hidden_size": config.width,
        "intermediate_size": round(config.expansion * config.width),
        "context_length": context,
        "layer_norm_epsilon": NORM_EPSILON,
        "rescale_every": 0,
    }


RWKV = ModelFamily(
    model_type="rwkv",
    architecture="RwkvForCausalLM",
    mixer="rwkv",
    norm_placement="pre",
    prefix="rwkv.",
    embedding="embeddings.weight",
    head="head.weight",
    layers="blocks",
    blocks=2,
    top_level={
        "blocks.0.pre_ln.weight": unchanged("embedding_norm.gain"),
        "blocks.0.pre_ln.bias": unchanged("embedding_norm.bias"),
        "ln_out.weight": unchanged("norm.gain"),
        "ln_out.bias": unchanged("norm.bias"),
    },
    per_layer={
        "ln1.weight": unchanged("{first}.mixer_norm.gain"),
        "ln1.bias": unchanged("{first}.mixer_norm.bias"),
        "attention.time_decay": unchanged("{first}.mixer.decay"),
        "attention.time_first": unchanged("{first}.mixer.bonus"),
        "attention.time_mix_key": broadcast_vector("{first}.mixer.mix_key"),
        "attention.time_mix_value": broadcast_vector("{first}.mixer.mix_value"),
        "attention.time_mix_receptance": broadcast_vector("{first}.mixer.mix_receptance"),
        "attention.key.weight": unchanged("{first}.mixer.key.weight"),
        "attention.value.weight": unchanged("{first}.mixer.value.weight"),
        "attention.receptance.weight": unchanged("{first}.mixer.receptance.weight"),
        "attention.output.weight": unchanged("{first}.mixer.output.weight"),
        "ln2.weight": unchanged("{second}.mixer_norm.gain"),
        "ln2.bias": unchanged("{second}.mixer_norm.bias"),
        "feed_forward.time_mix_key": broadcast_vector("{second}.mixer.mix_key"),
        "feed_forward.time_mix_receptance": broadcast_vector("{second}.mixer.mix_receptance"),
        "feed_forward.key.weight": unchanged("{second}.mixer.key.weight"),
        "feed_forward.receptance.weight": unchanged("{second}.mixer.receptance.weight"),
        "feed_forward.value.weight": unchanged("{second}.mixer.value.weight"),
    },
    ignored_settings=frozenset({"dropout", "activation"}),
    from_hf_config=from_hf_config,
    to_hf_config=to_hf_config,
)
