"""RWKV, version 4 (Peng et al. 2023): a layer is two blocks of ours."""

from typing import Any

from foveal.config import ModelConfig
from foveal.core.errors import UserError
from foveal.interop.huggingface.family import EPSILON, Family, same, spread
from foveal.interop.huggingface.hf_config import Settings


def to_ours(settings: Settings) -> tuple[dict[str, Any], int]:
    """rescale_every is theirs to keep float16 from overflowing: the files hold the weights as trained."""
    settings.require("layer_norm_epsilon", EPSILON)
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
        "tied": settings.truth("tie_word_embeddings", False),
        "projection_bias": False,
    }, settings.size("context_length", 1024)


def to_theirs(config: ModelConfig, context: int) -> dict[str, Any]:
    if config.layers == 1:
        raise UserError("model.layers=1: transformers can't open an rwkv of fewer than two layers")
    return {
        "num_hidden_layers": config.layers,
        "hidden_size": config.width,
        "attention_hidden_size": config.width,
        "intermediate_size": round(config.expansion * config.width),
        "context_length": context,
        "layer_norm_epsilon": EPSILON,
        "rescale_every": 0,
    }


RWKV = Family(
    model_type="rwkv",
    architecture="RwkvForCausalLM",
    mixer="rwkv",
    prefix="rwkv.",
    embedding="embeddings.weight",
    head="head.weight",
    layers="blocks",
    blocks=2,
    once={
        "blocks.0.pre_ln.weight": same("embedding_norm.gain"),
        "blocks.0.pre_ln.bias": same("embedding_norm.bias"),
        "ln_out.weight": same("norm.gain"),
        "ln_out.bias": same("norm.bias"),
    },
    layer={
        "ln1.weight": same("{first}.mixer_norm.gain"),
        "ln1.bias": same("{first}.mixer_norm.bias"),
        "attention.time_decay": same("{first}.mixer.decay"),
        "attention.time_first": same("{first}.mixer.bonus"),
        "attention.time_mix_key": spread("{first}.mixer.mix_key"),
        "attention.time_mix_value": spread("{first}.mixer.mix_value"),
        "attention.time_mix_receptance": spread("{first}.mixer.mix_receptance"),
        "attention.key.weight": same("{first}.mixer.key.weight"),
        "attention.value.weight": same("{first}.mixer.value.weight"),
        "attention.receptance.weight": same("{first}.mixer.receptance.weight"),
        "attention.output.weight": same("{first}.mixer.output.weight"),
        "ln2.weight": same("{second}.mixer_norm.gain"),
        "ln2.bias": same("{second}.mixer_norm.bias"),
        "feed_forward.time_mix_key": spread("{second}.mixer.mix_key"),
        "feed_forward.time_mix_receptance": spread("{second}.mixer.mix_receptance"),
        "feed_forward.key.weight": same("{second}.mixer.key.weight"),
        "feed_forward.receptance.weight": same("{second}.mixer.receptance.weight"),
        "feed_forward.value.weight": same("{second}.mixer.value.weight"),
    },
    free=frozenset({"dropout", "activation"}),
    to_ours=to_ours,
    to_theirs=to_theirs,
)
