"""Weights that are NaN or infinite are refused wherever they are opened."""

import math
from pathlib import Path

import pytest
import safetensors.torch
import torch

from foveal.store.sealed import open_tensors, seal_tensors
from tests.support.command_line import TINY_MODEL, refuse, succeed


def spoil_weights(run: Path, value: float) -> str:
    """Set one weight of a run, seal the weights again, and return the name of the tensor."""
    path = run / "model.safetensors"
    tensors, facts = open_tensors(path.read_bytes(), str(path))
    name = next(iter(tensors))
    tensors[name].view(-1)[-1] = value
    path.write_bytes(seal_tensors(tensors, facts))
    return name


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_run_with_such_a_weight_is_refused(run: Path, value: float) -> None:
    name = spoil_weights(run, value)
    why = f"run/model.safetensors: {name} is not finite (NaN or infinite)"
    for command in ("evaluate", "generate", "export"):
        assert why in refuse(command, "run", *(["out"] if command == "export" else []))
    assert why in refuse("predict", "run", "text.txt")
    assert why in refuse("inspect", "run")
    assert why in refuse("train", "text.txt", *TINY_MODEL, "--from", "run", "--run", "next")
    assert not Path("next").exists()


def test_such_weights_are_not_imported() -> None:
    budget = ("--budget", "3steps", "--run", "own")
    succeed("train", "text.txt", *TINY_MODEL, "--model", "mamba", *budget)
    succeed("export", "own", "folder")
    path = Path("folder/model.safetensors")
    tensors = safetensors.torch.load_file(path)
    next(iter(tensors.values())).view(-1)[0] = torch.nan
    safetensors.torch.save_file(tensors, path, {"format": "pt"})
    assert "is not finite (NaN or infinite)" in refuse("import", "folder", "--run", "back")
    assert not Path("back").exists()
