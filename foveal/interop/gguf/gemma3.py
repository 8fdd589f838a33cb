"""Gemma 3 in GGUF files: its settings and tensors have other names than Hugging Face's."""

from dataclasses import replace
from typing import Any

from foveal.interop.gguf.file import GGUFFile
from foveal.interop.huggingface.family import unchanged
from foveal.interop.huggingface.gemma3 import GEMMA3

ARCHITECTURE = "gemma3"
SETTINGS = {
    "hidden_size": "embedding_length",
    "num_hidden_layers": "block_count",
    "intermediate_size": "feed_forward_length",
    "num_attention_heads": "attention.head_count",
    "num_key_value_heads": "attention.head_count_kv",
    "head_dim": "attention.key_length",
    "rms_norm_eps": "attention.layer_norm_rms_epsilon",
    "sliding_window": "attention.sliding_window",
    "max_position_embeddings": "context_length",
}
"""The settings that each file has, by Hugging Face's names."""
OTHER_SETTINGS = {
    "rope_theta": "rope.freq_base",
    "rope_local_base_freq": "rope.freq_base_swa",
    "rope_scaling": "rope.scaling.type",
    "sliding_window_pattern": "attention.sliding_window_pattern",
    "attn_logit_softcapping": "attn_logit_softcapping",
    "final_logit_softcapping": "final_logit_softcapping",
}
"""Settings that files may have."""
LARGEST_LAYERS, LARGEST_SCALAR = 62, 168
"""The layers of the largest model, which alone has another scale of attention. No setting says so."""
FAMILY = replace(
    GEMMA3,
    prefix="",
    embedding="token_embd.weight",
    head="output.weight",
    layers="blk",
    top_level={"output_norm.weight": unchanged("norm.gain")},
    per_layer={
        "attn_norm.weight": unchanged("{first}.mixer_norm.gain"),
        "attn_q.weight": unchanged("{first}.mixer.query.weight"),
        "attn_k.weight": unchanged("{first}.mixer.key.weight"),
        "attn_v.weight": unchanged("{first}.mixer.value.weight"),
        "attn_output.weight": unchanged("{first}.mixer.output.weight"),
        "attn_q_norm.weight": unchanged("{first}.mixer.query_norm.gain"),
        "attn_k_norm.weight": unchanged("{first}.mixer.key_norm.gain"),
        "post_attention_norm.weight": unchanged("{first}.mixer_output_norm.gain"),
        "ffn_norm.weight": unchanged("{first}.feedforward_norm.gain"),
        "ffn_gate.weight": unchanged("{first}.feedforward.gate.weight"),
        "ffn_up.weight": unchanged("{first}.feedforward.expand.weight"),
        "ffn_down.weight": unchanged("{first}.feedforward.contract.weight"),
        "post_ffw_norm.weight": unchanged("{first}.feedforward_output_norm.gain"),
    },
)
"""The names of the tensors. Gains of norms are stored with the 1 that Hugging Face's lack."""


def hf_settings(file: GGUFFile, vocabulary: int) -> dict[str, Any]:
    """Return the settings of a file by Hugging Face's names.

    Raises: UserError: a setting is missing.
    """
    settings = {name: file.setting(f"{ARCHITECTURE}.{key}") for name, key in SETTINGS.items()}
    settings |= {name: file.metadata.get(f"{ARCHITECTURE}.{key}") for name, key in OTHER_SETTINGS.items()}
    is_largest = settings["num_hidden_layers"] == LARGEST_LAYERS
    scalar = LARGEST_SCALAR if is_largest else settings["head_dim"]
    tied = FAMILY.head not in file.stored
    return settings | {"vocab_size": vocabulary, "query_pre_attn_scalar": scalar, "tie_word_embeddings": tied}
