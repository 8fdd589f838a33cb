"""Mamba, version 1 (Gu and Dao 2023)."""

from typing import Any

from foveal.config import DataConfig, ModelConfig
from foveal.interop.huggingface.family import NORM_EPSILON, ModelFamily, depthwise_kernel, unchanged
from foveal.interop.huggingface.hf_config import HFConfig
from foveal.layers.mixers.mamba import MambaSpec
from foveal.models.mixer_settings import settings_of


def from_hf_config(settings: HFConfig) -> tuple[dict[str, Any], int]:
    """Return the tables of a `ModelConfig`, and the context length.

    residual_in_fp32 has no effect in float32. time_step_... and rescale_... affect only the initial weights.
    """
    settings.require("layer_norm_epsilon", NORM_EPSILON)
    settings.require("hidden_act", "silu")
    settings.require("use_bias", False)
    settings.require("use_conv_bias", True)
    width = settings.size("hidden_size", 768)
    if settings.get("time_step_rank", "auto") != "auto":
        settings.require("time_step_rank", -(-width // 16))
    mamba = {"expand": ("expand", 2), "state_size": ("state_size", 16), "conv_kernel": ("conv_kernel", 4)}
    return {
        "mixers": "mamba",
        "layers": settings.size("num_hidden_layers", 32),
        "width": width,
        "mamba": {name: settings.size(*key_and_default) for name, key_and_default in mamba.items()},
        "norm": "rms",
        "residual": True,
        "tie_embeddings": settings.boolean("tie_word_embeddings", True),
        "projection_bias": False,
    }, DataConfig().context_length


def to_hf_config(config: ModelConfig, context: int) -> dict[str, Any]:
    """Return the settings of a config.json."""
    mamba = settings_of(config, MambaSpec)
    return {
        "num_hidden_layers": config.layers,
        "hidden_size": config.width,
        "state_size": mamba.state_size,
        "expand": mamba.expand,
        "conv_kernel": mamba.conv_kernel,
        "time_step_rank": -(-config.width // 16),
        "layer_norm_epsilon": NORM_EPSILON,
    }


MAMBA = ModelFamily(
    model_type="mamba",
    architecture="MambaForCausalLM",
    mixer="mamba",
    norm_placement="pre",
    prefix="backbone.",
    embedding="embeddings.weight",
    head="lm_head.weight",
    layers="layers",
    blocks=1,
    top_level={
        "norm_f.weight": unchanged("norm.gain"),
    },
    per_layer={
        "norm.weight": unchanged("{first}.mixer_norm.gain"),
        "mixer.in_proj.weight": unchanged("{first}.mixer.input.weight"),
        "mixer.conv1d.weight": depthwise_kernel("{first}.mixer.convolution_weight"),
        "mixer.conv1d.bias": unchanged("{first}.mixer.convolution_bias"),
        "mixer.x_proj.weight": unchanged("{first}.mixer.selection.weight"),
        "mixer.dt_proj.weight": unchanged("{first}.mixer.delta.weight"),
        "mixer.dt_proj.bias": unchanged("{first}.mixer.delta.bias"),
        "mixer.A_log": unchanged("{first}.mixer.A_log"),
        "mixer.D": unchanged("{first}.mixer.skip"),
        "mixer.out_proj.weight": unchanged("{first}.mixer.output.weight"),
    },
    ignored_settings=frozenset({"dropout", "expansion", "activation"}),
    from_hf_config=from_hf_config,
    to_hf_config=to_hf_config,
)
