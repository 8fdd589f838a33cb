"""The files of a model folder: their sizes are checked before they are read."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from foveal.interop.huggingface import files
from tests.support.command_line import refuse

GPT2 = {
    "model_type": "gpt2",
    "n_layer": 1,
    "n_head": 2,
    "n_embd": 8,
    "vocab_size": 9,
    "n_positions": 16,
}


def test_more_tensors_than_a_model_has(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_TENSORS", 100)
    folder = Path("model")
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(GPT2))
    for count, reason in ((100, "and 113 more"), (101, "over 100 tensors, too many for a model")):
        save_file({f"n{number}": torch.zeros(1) for number in range(count)}, folder / "model.safetensors")
        message = refuse("import", folder)
        assert reason in message
        assert len(message) < 300
