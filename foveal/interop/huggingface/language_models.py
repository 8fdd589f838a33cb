"""Import and export of Hugging Face language models: gpt2, gemma3_text, mamba and rwkv."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import safetensors.torch
import torch
from torch import Tensor

from foveal.config import ModelConfig, suggest
from foveal.core.errors import UserError
from foveal.heads.decoder_lm import DecoderLM
from foveal.interop.huggingface.checks import check_tensors, validate_model_config
from foveal.interop.huggingface.family import ModelFamily
from foveal.interop.huggingface.files import HF_CONFIG_FILE, HF_WEIGHTS_FILE, read_json, read_weights
from foveal.interop.huggingface.gemma3 import GEMMA3
from foveal.interop.huggingface.gpt2 import GPT2
from foveal.interop.huggingface.hf_config import HFConfig
from foveal.interop.huggingface.mamba import MAMBA
from foveal.interop.huggingface.rwkv import RWKV
from foveal.layers.blocks.feedforward import hidden_width
from foveal.models.decoder import language_model
from foveal.models.mixer_settings import resolve_mixer_settings
from foveal.store import durable
from foveal.store.sealed import unique_state_dict

FAMILIES = {family.model_type: family for family in (GPT2, GEMMA3, MAMBA, RWKV)}
PROJECTION_BIAS = "projection.bias"
BERT_MODEL_TYPE = "bert"
"""An encoder, which `interop.huggingface.bert` reads."""
OTHER_MODEL_TYPES = (BERT_MODEL_TYPE, "resnet", "convnext", "vit")
"""Model types that other files read."""


class ImportedTextModel(NamedTuple):
    """An imported text model: a language model, or BERT's encoder with or without its head."""

    model_type: str
    config: ModelConfig
    vocabulary: int
    context: int
    """The length in tokens of the model's training windows. GPT-2 and BERT have no positions beyond this
    length."""
    tensors: dict[str, Tensor]
    """The weights under Foveal's names, in float32."""
    has_head: bool = True
    bounded: bool = False
    """Whether the size of the model's state is bounded, so that training can carry the state
    through a text."""


def read_language_model(folder: Path) -> ImportedTextModel:
    """Read a model folder.

    Raises: UserError: a file is missing or damaged, or the model differs from Foveal's.
    """
    path = folder / HF_CONFIG_FILE
    settings = HFConfig(read_json(path), path)
    model_type = settings.get("model_type", "")
    if not isinstance(model_type, str) or model_type not in FAMILIES:
        known = suggest(str(model_type)[:40], [*FAMILIES, *OTHER_MODEL_TYPES])
        raise settings.error("model_type", f"Foveal can't import this type{known}")
    family = FAMILIES[model_type]
    tensors = _normalize_names(family, read_weights(folder))
    return convert_language_model(family, settings, tensors, folder)


def convert_language_model(
    family: ModelFamily, settings: HFConfig, tensors: dict[str, Tensor], place: Path
) -> ImportedTextModel:
    """Return the model with these settings and `tensors`, which are those of the file or folder `place`.

    Raises: UserError: the model differs from Foveal's, or the tensors do not fit the settings.
    """
    path = settings.path
    config, context = _read_config(family, settings)
    vocabulary = settings.size("vocab_size", 0)
    if config.layers > len(tensors):
        raise UserError(
            f"{path}: {config.layers} layers, but {place} has no more than {len(tensors)} tensors"
        )
    try:
        with torch.device("meta"):
            meta_model = language_model(config, vocabulary, context)
    except (ValueError, RuntimeError) as error:
        raise UserError(f"{path}: {error}") from None
    shapes = unique_state_dict(meta_model)
    expected = family.to_hf_weights(shapes, config.layers, config.tie_embeddings)
    if config.tie_embeddings:
        _drop_tied_head(family, tensors, place)
    check_tensors(expected, tensors, place)
    tensors = {name: tensor.float() for name, tensor in tensors.items()}
    weights = family.from_hf_weights(tensors, config.layers, config.tie_embeddings)
    return ImportedTextModel(
        family.model_type, config, vocabulary, context, weights, bounded=meta_model.bounded
    )


def write_language_model(
    folder: Path,
    model: DecoderLM,
    config: ModelConfig,
    context: int,
    files: Mapping[str, bytes] = {},
) -> str:
    """Write the model and `files` into a new `folder`, completely or not at all, and return the model_type.

    Raises: UserError: the folder exists, or Hugging Face has no such model.
    """
    if folder.exists():
        raise UserError(f"{folder} exists: name a new folder")
    family = _family_of(config)
    context = model.limit or context
    settings = {
        "model_type": family.model_type,
        "architectures": [family.architecture],
        "vocab_size": model.vocabulary,
        **family.to_hf_config(config, context),
        "tie_word_embeddings": config.tie_embeddings,
        "bos_token_id": None,
        "eos_token_id": None,
        "pad_token_id": None,
    }
    _check_representable(family, config, HFConfig(settings, folder / HF_CONFIG_FILE))
    weights = unique_state_dict(model)
    if PROJECTION_BIAS in weights and weights.pop(PROJECTION_BIAS).any():
        raise UserError(
            f"model.projection_bias=true: {family.model_type} has no bias in its projection, and this bias "
            "is not zero; train with model.projection_bias=false"
        )
    tensors = family.to_hf_weights(
        {name: tensor.cpu() for name, tensor in weights.items()}, config.layers, config.tie_embeddings
    )
    with durable.atomic_folder(folder) as part:
        durable.write_synced(part / HF_CONFIG_FILE, json.dumps(settings, indent=2).encode() + b"\n")
        durable.write_synced(part / HF_WEIGHTS_FILE, safetensors.torch.save(tensors, {"format": "pt"}))
        for name, content in files.items():
            durable.write_synced(part / name, content)
    return family.model_type


def _read_config(family: ModelFamily, settings: HFConfig) -> tuple[ModelConfig, int]:
    tables, context = family.from_hf_config(settings)
    return validate_model_config(tables, settings.path), context


def _normalize_names(family: ModelFamily, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors under the names of a model with its head, without buffers.

    Files of models without a head have no prefix. Old files of GPT-2 contain the causal mask.
    """
    names = [name for name in tensors if not name.endswith((".attn.bias", ".attn.masked_bias"))]
    without_prefix = not any(name.startswith(family.prefix) for name in names)
    return {
        family.prefix + name if without_prefix and name != family.head else name: tensors[name]
        for name in names
    }


def _drop_tied_head(family: ModelFamily, tensors: dict[str, Tensor], folder: Path) -> None:
    """Remove the second copy of a tied embedding, if there is one.

    Raises: UserError: the head is not the embedding.
    """
    head = tensors.pop(family.head, None)
    embedding = family.prefix + family.embedding
    if head is not None and embedding in tensors and not torch.equal(head, tensors[embedding]):
        raise UserError(f"{folder}: tie_word_embeddings is true, but {family.head} is not {embedding}")


def _family_of(config: ModelConfig) -> ModelFamily:
    """Return the family whose mixers are those of a config.

    Raises: UserError: there is no such family.
    """
    mixers = _distinct_mixers(config)
    families = [family for family in FAMILIES.values() if family.mixer == mixers]
    if families:
        place = config.norm_placement
        return next((family for family in families if family.norm_placement == place), families[0])
    known = ", ".join(dict.fromkeys(family.mixer for family in FAMILIES.values()))
    raise UserError(
        f"model.mixers={config.mixers}: Hugging Face has no such model; only models whose mixers are all of "
        f"one kind can be exported: {known}"
    )


def _check_representable(family: ModelFamily, config: ModelConfig, settings: HFConfig) -> None:
    """Check that a config stays the same when it is read back from the exported `settings`.

    Raises: UserError: a setting would change.
    """
    restored, _ = _read_config(family, settings)
    before, after = dict(_flatten(_normalized(config))), dict(_flatten(_normalized(restored)))
    changed = [
        f"model.{key}={str(before[key]).lower()} is always {str(after[key]).lower()} there"
        for key in before
        if before[key] != after[key] and key not in family.ignored_settings and _is_relevant(key, family)
    ]
    if changed:
        raise UserError(f"Hugging Face has no such {family.model_type}: {'; '.join(changed)}")


def _is_relevant(key: str, family: ModelFamily) -> bool:
    """Return whether this family reads a setting. Settings of other mixers and layers have no effect."""
    section, dot, _ = key.partition(".")
    if key in ("projection_bias", "initialization", "head_pooling"):
        return False
    return not dot or section in (family.mixer, "positions")


def _normalized(config: ModelConfig) -> ModelConfig:
    """Return the config of the same model in a normal form."""
    spelling = {
        "mixers": _distinct_mixers(config),
        "embedding_width": 0 if config.embedding_width == config.width else config.embedding_width,
        "expansion": hidden_width(config.feedforward, config.width, config.expansion) / config.width,
    }
    return resolve_mixer_settings(config.model_copy(update=spelling))


def _distinct_mixers(config: ModelConfig) -> str:
    """Return the mixers of the model's layers, without duplicates."""
    pattern = ["+".join(layer) for layer in config.pattern]
    return ",".join(sorted(set((pattern * config.layers)[: config.layers])))


def _flatten(config: ModelConfig) -> Iterable[tuple[str, Any]]:
    for key, value in config.model_dump().items():
        if isinstance(value, dict):
            yield from ((f"{key}.{inner}", item) for inner, item in value.items())
        else:
            yield key, value
