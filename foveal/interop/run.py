"""A model folder of Hugging Face's becomes a run, to generate with, to measure and to train on."""

from pathlib import Path
from typing import Any

from foveal.config import from_tables
from foveal.data.tokenizers import FILE, Tokenizer
from foveal.interop.bert import read_bert
from foveal.interop.folder import CONFIG, read_json
from foveal.interop.huggingface import BERT, Foreign, read
from foveal.interop.tokenizer import read_tokenizer
from foveal.interop.wordpiece import read_wordpiece
from foveal.training.run import Run, check_place, create_run
from foveal.training.sealed import seal_tensors

RATE = 1e-4
"""The learning rate with which the run's config goes on: its weights are trained already."""
BATCH_TOKENS, CONTEXT = 4096, 128


def import_run(folder: Path, path: Path) -> tuple[Run, Foreign]:
    """Make the run `path` of the model `folder`. UserError, and nothing written, if either can't be used."""
    check_place(path)
    encoder = read_json(folder / CONFIG).get("model_type") == BERT
    found, tokenizer, tables = _encoder(folder) if encoder else _language_model(folder)
    source = str(folder.absolute())
    data: dict[str, Any] = {
        "data": None,
        "valid": None,
        "test": None,
        "preset": "",
        "device": "cpu",
        "facts": {"parts": {}},
    }
    weights = seal_tensors(
        found.tensors, {"which": "imported", "from": source, "model_type": found.model_type}
    )
    inputs = {f"text/{FILE}": tokenizer.to_json().encode()}
    config = from_tables(tables, {"model": found.config.model_dump(), "optimizer": {"rate": RATE}})
    return create_run(path, config, inputs, data | {"imported": source}, weights), found


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
