"""A model folder of Hugging Face's, or published weights: a run, to use, to measure and to train on."""

from pathlib import Path
from typing import Any

from foveal.config import from_tables, nearest
from foveal.config.files import read_preset
from foveal.core.errors import UserError
from foveal.core.log import Say
from foveal.data.images.image_examples import ImageInputs
from foveal.data.text.tokenizers import FILE, Tokenizer
from foveal.interop.huggingface.bert import read_bert
from foveal.interop.huggingface.convnext import read_convnext
from foveal.interop.huggingface.files import CONFIG, read_json
from foveal.interop.huggingface.image_processor import read_seen
from foveal.interop.huggingface.language_models import BERT, Foreign, read
from foveal.interop.huggingface.resnet import read_resnet
from foveal.interop.huggingface.tokenizer import read_tokenizer
from foveal.interop.huggingface.vit import read_vit
from foveal.interop.huggingface.wordpiece import read_wordpiece
from foveal.interop.image_network import ForeignNetwork
from foveal.interop.published import efficientnet
from foveal.interop.published.catalog import PUBLISHED, folder_of, source_of
from foveal.store.run import Run, check_place, create_run
from foveal.store.sealed import seal_tensors

OF_IMAGES = {"resnet": read_resnet, "convnext": read_convnext, "vit": read_vit}
"""By model_type, what reads a network for images."""
RATE = 1e-4
"""The learning rate with which a text model's config goes on: its weights are trained already."""
BATCH_TOKENS, CONTEXT = 4096, 128
NETWORK_RATE, NETWORK_WARMUP, BATCH = 0.003, 20, 32
"""The same for a network of images, by gradient descent with momentum; and images in a batch. Few images and
few steps are usual: so they are not cut, and batch norms stay as they are (docs/transfer.md has figures)."""


def import_run(folder: Path, path: Path, say: Say) -> tuple[Run, Foreign | ForeignNetwork]:
    """Make the run `path` of the model `folder`, or of the published weights of that name.

    UserError, and nothing written, if either can't be used.
    """
    check_place(path)
    source = str(folder.absolute())
    if not folder.exists():
        name = str(folder)
        if name not in PUBLISHED:
            known = nearest(name, PUBLISHED)
            raise UserError(f"{folder}: no such folder, and no published weights of that name{known}")
        source, folder = source_of(name), folder_of(name, say)
        if name == efficientnet.NAME:
            network, inputs = efficientnet.read_efficientnet(folder)
            return _network(path, source, network.name, network, inputs)
    model_type = read_json(folder / CONFIG).get("model_type")
    if isinstance(model_type, str) and model_type in OF_IMAGES:
        network = OF_IMAGES[model_type](folder)
        return _network(path, source, model_type, network, read_seen(folder, network))
    found, tokenizer, tables = _encoder(folder) if model_type == BERT else _language_model(folder)
    files = {f"text/{FILE}": tokenizer.to_json().encode()}
    tables = {"model": found.config.model_dump(), "optimizer": {"rate": RATE}, **tables}
    return _made(path, source, found.model_type, found.tensors, files, tables), found


def _made(
    path: Path,
    source: str,
    model_type: str,
    tensors: dict[str, Any],
    inputs: dict[str, bytes],
    tables: dict[str, Any],
) -> Run:
    """The run, whose data is none."""
    data: dict[str, Any] = {
        "data": None,
        "valid": None,
        "test": None,
        "preset": "",
        "device": "cpu",
        "facts": {"parts": {}},
    }
    weights = seal_tensors(tensors, {"which": "imported", "from": source, "model_type": model_type})
    return create_run(path, from_tables(tables), inputs, data | {"imported": source}, weights)


def _network(
    path: Path, source: str, model_type: str, found: ForeignNetwork, inputs: ImageInputs
) -> tuple[Run, ForeignNetwork]:
    tables = {
        **read_preset("images"),
        "data": {
            "image": {"size": inputs.size, "channels": found.channels, "batch": BATCH},
            "augment": {"crop": "none", "flip": True},
        },
        "model": found.model.model_dump(),
    }
    if any(name.endswith("running_mean") for name in found.tensors):
        tables["training"] = tables["training"] | {"freeze": "norms"}
    tables["optimizer"] = tables["optimizer"] | {"rate": NETWORK_RATE}
    tables["schedule"] = tables["schedule"] | {"warmup": NETWORK_WARMUP}
    return _made(path, source, model_type, found.tensors, inputs.files(), tables), found


def _language_model(folder: Path) -> tuple[Foreign, Tokenizer, dict[str, Any]]:
    """The model, its tokenizer, and the settings of its data."""
    found = read(folder)
    tokenizer = read_tokenizer(folder, found.vocabulary)
    data = {
        "tokenizer": tokenizer.kind,
        "order": "windows" if found.config.mixers == "attention" else "streams",
        "context": found.context,
        "batch_tokens": max(BATCH_TOKENS, found.context),
    }
    return found, tokenizer, {"data": data}


def _encoder(folder: Path) -> tuple[Foreign, Tokenizer, dict[str, Any]]:
    pieces = read_wordpiece(folder)
    found = read_bert(folder, pieces)
    data = {
        "tokenizer": pieces.tokenizer.kind,
        "context": min(CONTEXT, found.context),
        "longest": found.context,
        "batch_tokens": BATCH_TOKENS,
    }
    return found, pieces.tokenizer, {"data": data, "task": {"name": "mask"}}
