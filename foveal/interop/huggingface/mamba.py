"""Mamba, version 1 (Gu and Dao 2023)."""

from typing import Any

from foveal.config import DataConfig, ModelConfig
from foveal.interop.huggingface.family import EPSILON, Family, depthwise, same
from foveal.interop.huggingface.hf_config import Settings


def to_ours(settings: Settings) -> tuple[dict[str, Any], int]:
    """residual_in_fp32 means nothing in float32; time_step_... and rescale_... are of the first weights."""
    settings.require("layer_norm_epsilon", EPSILON)
    settings.require("hidden_act", "silu")
    settings.require("use_bias", False)
    settings.require("use_conv_bias", True)
    width = settings.size("hidden_size", 768)
    if settings.get("time_step_rank", "auto") != "auto":
        settings.require("time_step_rank", -(-width // 16))
    mamba = {"expansion": ("expand", 2), "states": ("state_size", 16), "kernel": ("conv_kernel", 4)}
    return {
        "mixers": "mamba",
        "layers": settings.size("num_hidden_layers", 32),
        "width": width,
        "mamba": {ours: settings.size(*theirs) for ours, theirs in mamba.items()},
        "norm": "rms",
        "residual": True,
        "tied": settings.truth("tie_word_embeddings", True),
        "projection_bias": False,
    }, DataConfig().context


def to_theirs(config: ModelConfig, context: int) -> dict[str, Any]:
    return {
        "num_hidden_layers": config.layers,
        "hidden_size": config.width,
        "state_size": config.mamba.states,
        "expand": config.mamba.expansion,
        "conv_kernel": config.mamba.kernel,
        "time_step_rank": -(-config.width // 16),
        "layer_norm_epsilon": EPSILON,
    }


MAMBA = Family(
    model_type="mamba",
    architecture="MambaForCausalLM",
    mixer="mamba",
    prefix="backbone.",
    embedding="embeddings.weight",
    head="lm_head.weight",
    layers="layers",
    blocks=1,
    once={
        "norm_f.weight": same("norm.gain"),
    },
    layer={
        "norm.weight": same("{first}.mixer_norm.gain"),
        "mixer.in_proj.weight": same("{first}.mixer.input.weight"),
        "mixer.conv1d.weight": depthwise("{first}.mixer.convolution_weight"),
        "mixer.conv1d.bias": same("{first}.mixer.convolution_bias"),
        "mixer.x_proj.weight": same("{first}.mixer.selection.weight"),
        "mixer.dt_proj.weight": same("{first}.mixer.delta.weight"),
        "mixer.dt_proj.bias": same("{first}.mixer.delta.bias"),
        "mixer.A_log": same("{first}.mixer.A_log"),
        "mixer.D": same("{first}.mixer.skip"),
        "mixer.out_proj.weight": same("{first}.mixer.output.weight"),
    },
    free=frozenset({"dropout", "expansion", "activation"}),
    to_ours=to_ours,
    to_theirs=to_theirs,
)
