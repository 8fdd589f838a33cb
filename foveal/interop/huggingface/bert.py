"""BERT (Devlin et al. 2019): an encoder with attention to the whole row, and its masked-language head if
there is one.

BERT's sentences are [CLS] x [SEP], Foveal's are bos x eos. The special tokens at the end of Foveal's table
have copies of the rows of [CLS], [SEP] and [MASK]. The token type embedding of the first sentence is added to
every position.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from foveal.config import EncoderConfig
from foveal.core.errors import UserError
from foveal.data.text.special_tokens import SpecialTokens
from foveal.heads.masked_lm import MaskedLMHead
from foveal.interop.huggingface.checks import ACTIVATIONS, check_tensors, validate_model_config
from foveal.interop.huggingface.files import HF_CONFIG_FILE, read_json, read_weights
from foveal.interop.huggingface.hf_config import HFConfig
from foveal.interop.huggingface.language_models import (
    BERT_MODEL_TYPE,
    ImportedTextModel,
)
from foveal.interop.huggingface.wordpiece import WordPieceVocabulary
from foveal.models.encoder import EncoderWithHead, text_encoder
from foveal.store.sealed import unique_state_dict

WORD_EMBEDDINGS, POSITION_EMBEDDINGS, TYPE_EMBEDDINGS = (
    f"embeddings.{name}_embeddings.weight" for name in ("word", "position", "token_type")
)
HEAD_BIAS = "cls.predictions.bias"
LINEAR_NAMES = {"weight": "weight", "bias": "bias"}
NORM_NAMES = {"weight": "gain", "bias": "bias"}
TOP_LEVEL_NAMES = {"embeddings.LayerNorm": ("stack.positioned.norm", NORM_NAMES)}
LAYER_NAMES = {
    "attention.self.query": ("mixer.query", LINEAR_NAMES),
    "attention.self.key": ("mixer.key", LINEAR_NAMES),
    "attention.self.value": ("mixer.value", LINEAR_NAMES),
    "attention.output.dense": ("mixer.output", LINEAR_NAMES),
    "attention.output.LayerNorm": ("mixer_norm", NORM_NAMES),
    "intermediate.dense": ("feedforward.expand", LINEAR_NAMES),
    "output.dense": ("feedforward.contract", LINEAR_NAMES),
    "output.LayerNorm": ("feedforward_norm", NORM_NAMES),
}
HEAD_NAMES = {
    "cls.predictions.transform.dense": ("transform", LINEAR_NAMES),
    "cls.predictions.transform.LayerNorm": ("norm", NORM_NAMES),
}


def read_bert(folder: Path, wordpieces: WordPieceVocabulary) -> ImportedTextModel:
    """Read a model folder whose tokens are `wordpieces`: the encoder, and the head if the file has one.

    Raises: UserError: a file is missing or damaged, or the model differs from Foveal's.
    """
    path = folder / HF_CONFIG_FILE
    settings = HFConfig(read_json(path), path)
    encoder, max_length = from_hf_config(settings)
    config = validate_model_config({"encoder": encoder, "tie_embeddings": True}, path)
    hf_tensors = _normalize_names(read_weights(folder))
    size, vocabulary = wordpieces.tokenizer.size, settings.size("vocab_size", 0)
    if size > vocabulary:
        raise UserError(f"{path}: vocab_size={vocabulary}, but its tokenizer has {size} tokens")
    if config.encoder.layers > len(hf_tensors):
        raise UserError(
            f"{path}: {config.encoder.layers} layers, but {folder} has no more than {len(hf_tensors)} tensors"
        )
    with_head = HEAD_BIAS in hf_tensors
    try:
        shapes = _meta_weights(config.encoder, size, max_length)
    except (ValueError, RuntimeError) as error:
        raise UserError(f"{path}: {error}") from None
    names = dict(_name_pairs(config.encoder.layers, with_head))
    width = config.encoder.width
    expected = {hf_name: shapes[name] for hf_name, name in names.items()} | {
        WORD_EMBEDDINGS: torch.empty(vocabulary, width, device="meta"),
        POSITION_EMBEDDINGS: torch.empty(max_length, width, device="meta"),
        TYPE_EMBEDDINGS: torch.empty(settings.size("type_vocab_size", 2), width, device="meta"),
    }
    expected |= {HEAD_BIAS: torch.empty(vocabulary, device="meta")} if with_head else {}
    check_tensors(expected, hf_tensors, folder)
    hf_tensors = {name: tensor.float() for name, tensor in hf_tensors.items()}
    rows = torch.tensor([*range(size), *wordpieces.special_tokens])
    tensors = {name: hf_tensors[hf_name].contiguous() for hf_name, name in names.items()}
    tensors["encoder.embedding.table"] = hf_tensors[WORD_EMBEDDINGS][rows]
    positions = hf_tensors[POSITION_EMBEDDINGS] + hf_tensors[TYPE_EMBEDDINGS][0]
    tensors["encoder.stack.positioned.position.table"] = positions
    if with_head:
        tensors["head.projection.bias"] = hf_tensors[HEAD_BIAS][rows]
    return ImportedTextModel(BERT_MODEL_TYPE, config, size, max_length, tensors, with_head)


def from_hf_config(settings: HFConfig) -> tuple[dict[str, Any], int]:
    """Return the tables of an `EncoderConfig`, and the number of positions."""
    settings.require("position_embedding_type", "absolute")
    settings.require("is_decoder", False)
    settings.require("add_cross_attention", False)
    settings.require("tie_word_embeddings", True)
    width = settings.size("hidden_size", 768)
    return {
        "kind": "text",
        "mixers": "attention",
        "layers": settings.size("num_hidden_layers", 12),
        "width": width,
        "attention": {"heads": settings.size("num_attention_heads", 12)},
        "positions": {"kind": "learned"},
        "embedding_norm": True,
        "feedforward": "mlp",
        "expansion": settings.size("intermediate_size", 3072) / width,
        "activation": settings.choice("hidden_act", "gelu", ACTIVATIONS),
        "norm": "layer",
        "norm_placement": "post",
        "norm_epsilon": settings.fraction("layer_norm_eps", 1e-12),
        "residual": True,
        "dropout": settings.fraction("hidden_dropout_prob", 0.1),
    }, settings.size("max_position_embeddings", 512)


def _name_pairs(layers: int, with_head: bool) -> Iterator[tuple[str, str]]:
    """Yield the Hugging Face name and Foveal's name of each tensor that is equal in both."""
    modules = {hf_name: (f"encoder.{name}", weights) for hf_name, (name, weights) in TOP_LEVEL_NAMES.items()}
    for i in range(layers):
        for hf_name, (name, weights) in LAYER_NAMES.items():
            modules[f"encoder.layer.{i}.{hf_name}"] = (f"encoder.stack.blocks.{i}.{name}", weights)
    if with_head:
        modules |= {hf_name: (f"head.{name}", weights) for hf_name, (name, weights) in HEAD_NAMES.items()}
    for hf_name, (name, weights) in modules.items():
        for hf_weight, weight in weights.items():
            yield f"{hf_name}.{hf_weight}", f"{name}.{weight}"


def _normalize_names(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors under the newer names and without the prefix `bert.`.

    The pooler, other heads and buffers are left out.
    """
    names = {name: name.replace(".gamma", ".weight").replace(".beta", ".bias") for name in tensors}
    without_prefix = not any(name.startswith("bert.") for name in names)
    normalized = {}
    for name, new in names.items():
        if new.startswith(("cls.predictions.transform.", HEAD_BIAS)) or without_prefix:
            normalized[new] = tensors[name]
        elif new.startswith("bert."):
            normalized[new.removeprefix("bert.")] = tensors[name]
    unused = ("pooler.", "embeddings.position_ids")
    return {name: tensor for name, tensor in normalized.items() if not name.startswith(unused)}


def _meta_weights(config: EncoderConfig, size: int, max_length: int) -> dict[str, Tensor]:
    """Return the weights of Foveal's model as tensors on the meta device, which have no values."""
    with torch.device("meta"):
        encoder = text_encoder(config, SpecialTokens(size).vocab_size, max_length)
        return unique_state_dict(EncoderWithHead(encoder, MaskedLMHead(config.width, encoder.vocabulary)))
