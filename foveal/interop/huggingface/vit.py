"""Vision Transformers from Hugging Face (Dosovitskiy et al. 2021), of any size, with a class token."""

from pathlib import Path

import torch
from torch import Tensor

from foveal.config import ConfigError, ModelConfig
from foveal.core.errors import UserError
from foveal.heads.classification import ClassificationHead
from foveal.interop.huggingface.checks import ACTIVATIONS, validate_model_config
from foveal.interop.huggingface.files import HF_CONFIG_FILE, read_json, read_weights
from foveal.interop.huggingface.hf_config import HFConfig
from foveal.interop.image_network import ImportedImageNetwork, read_labels, rename_tensors
from foveal.models.encoder import EncoderWithHead, patch_encoder
from foveal.store.sealed import unique_state_dict

CLASS_TOKEN, POSITIONS, PROJECTION = (
    f"encoder.{name}" for name in ("token", "stack.positioned.position.table", "projection.weight")
)
TOP_LEVEL_NAMES = {
    CLASS_TOKEN: "vit.embeddings.cls_token",
    POSITIONS: "vit.embeddings.position_embeddings",
    PROJECTION: "vit.embeddings.patch_embeddings.projection.weight",
    "encoder.projection.bias": "vit.embeddings.patch_embeddings.projection.bias",
    "encoder.norm.gain": "vit.layernorm.weight",
    "encoder.norm.bias": "vit.layernorm.bias",
    "head.projection.weight": "classifier.weight",
    "head.projection.bias": "classifier.bias",
}
LAYER_NAMES = {
    "mixer.query": "attention.attention.query",
    "mixer.key": "attention.attention.key",
    "mixer.value": "attention.attention.value",
    "mixer.output": "attention.output.dense",
    "mixer_norm": "layernorm_before",
    "feedforward.expand": "intermediate.dense",
    "feedforward.contract": "output.dense",
    "feedforward_norm": "layernorm_after",
}


def read_vit(folder: Path) -> ImportedImageNetwork:
    """Read a model folder.

    Raises: UserError: a file is missing or damaged, or the model differs from Foveal's.
    """
    path = folder / HF_CONFIG_FILE
    settings = HFConfig(read_json(path), path)
    config, labels = from_hf_config(settings), read_labels(settings)
    channels, size = settings.size("num_channels", 3), settings.size("image_size", 224)
    hf_tensors = read_weights(folder)
    if config.encoder.layers > len(hf_tensors):
        raise UserError(f"{path}: {config.encoder.layers} layers, but {folder} has {len(hf_tensors)} tensors")
    try:
        meta_weights = _meta_weights(config, channels, size, len(labels))
    except (ConfigError, ValueError, RuntimeError) as error:
        raise UserError(f"{path}: {error}") from None
    width, patch = config.encoder.width, config.encoder.patch_size
    # Hugging Face has a convolution whose stride is its kernel size, and a batch axis of length 1.
    hf_shapes = {
        PROJECTION: (width, channels, patch, patch),
        CLASS_TOKEN: (1, 1, width),
        POSITIONS: (1, *meta_weights[POSITIONS].shape),
    }
    shapes = meta_weights | {name: meta_weights[name].view(shape) for name, shape in hf_shapes.items()}
    tensors = rename_tensors(shapes, hf_name, hf_tensors, folder)
    shaped = {name: tensor.view(meta_weights[name].shape) for name, tensor in tensors.items()}
    return ImportedImageNetwork("vit", config, channels, labels, shaped, size)


def from_hf_config(settings: HFConfig) -> ModelConfig:
    """Return the config of the model."""
    settings.require("qkv_bias", True)
    width = settings.size("hidden_size", 768)
    encoder = {
        "kind": "patches",
        "patch_size": settings.size("patch_size", 16),
        "mixers": "attention",
        "layers": settings.size("num_hidden_layers", 12),
        "width": width,
        "attention": {"heads": settings.size("num_attention_heads", 12)},
        "positions": {"kind": "learned"},
        "feedforward": "mlp",
        "expansion": settings.size("intermediate_size", 3072) / width,
        "activation": settings.choice("hidden_act", "gelu", ACTIVATIONS),
        "norm": "layer",
        "norm_epsilon": settings.fraction("layer_norm_eps", 1e-12),
        "residual": True,
        "dropout": settings.fraction("hidden_dropout_prob", 0.0),
        "pooling": "cls",
    }
    return validate_model_config({"encoder": encoder, "head_pooling": "encoder"}, settings.path)


def hf_name(name: str) -> str:
    """Return the Hugging Face name of Foveal's weight `name`."""
    if name in TOP_LEVEL_NAMES:
        return TOP_LEVEL_NAMES[name]
    _, _, _, number, rest = name.split(".", 4)
    part, _, kind = rest.rpartition(".")
    return f"vit.encoder.layer.{number}.{LAYER_NAMES[part]}.{'weight' if kind == 'gain' else kind}"


def _meta_weights(config: ModelConfig, channels: int, size: int, classes: int) -> dict[str, Tensor]:
    """Return the weights of Foveal's model as tensors on the meta device, which have no values."""
    with torch.device("meta"):
        encoder = patch_encoder(config.encoder, channels, size)
        return unique_state_dict(
            EncoderWithHead(encoder, ClassificationHead(encoder.width, classes, config.head_pooling))
        )
