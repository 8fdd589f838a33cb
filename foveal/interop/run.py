"""A model folder of Hugging Face's becomes a run, to generate with, to measure and to train on."""

from pathlib import Path
from typing import Any

from foveal.config import from_tables
from foveal.data.tokenizers import FILE
from foveal.interop.huggingface import Foreign, read
from foveal.interop.tokenizer import read_tokenizer
from foveal.training.run import Run, check_place, create_run
from foveal.training.sealed import seal_tensors

RATE = 1e-4
"""The learning rate with which the run's config goes on: its weights are trained already."""
BATCH_TOKENS = 4096


def import_run(folder: Path, path: Path) -> tuple[Run, Foreign]:
    """Make the run `path` of the model `folder`. UserError, and nothing written, if either can't be used."""
    check_place(path)
    found = read(folder)
    tokenizer = read_tokenizer(folder, found.vocabulary)
    tables = {
        "data": {
            "tokenizer": tokenizer.kind,
            "order": "windows" if found.config.mixers == "attention" else "streams",
            "context": found.context,
            "batch_tokens": max(BATCH_TOKENS, found.context),
        },
        "model": found.config.model_dump(),
        "optimizer": {"rate": RATE},
    }
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
    return create_run(path, from_tables(tables), inputs, data | {"imported": source}, weights), found
