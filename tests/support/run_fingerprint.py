"""What two runs must have in common to be equal: everything except the clock."""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

from foveal.store.checkpoint import load_latest
from foveal.store.sealed import open_json
from foveal.training.trainer import Trainer
from tests.support.saved_files import contents

CLOCK = {"seconds", "tokens_per_second"}


def fingerprint(trainer: Trainer) -> dict[str, Any]:
    """Return the state of a finished run: its last checkpoint byte by byte, logs, samples and best
    weights."""
    path = trainer.folder.path
    checkpoint, damaged = load_latest(trainer.folder.checkpoints)
    assert checkpoint
    assert not damaged
    files: dict[str, Any] = contents(checkpoint)
    state = open_json(files.pop("state.json"), "state.json")
    # Offsets count the digits of wall-clock fields; the lines themselves are compared below.
    assert state.pop("log_sha256") == {
        name: sha256((path / f"{name}.jsonl").read_bytes()).hexdigest()
        for name in ("metrics", "samples", "statistics")
    }
    assert state.pop("metrics") == (path / "metrics.jsonl").stat().st_size
    assert state.pop("statistics") == (path / "statistics.jsonl").stat().st_size
    assert state.pop("samples") == (path / "samples.jsonl").stat().st_size
    del state["progress"]["seconds"]
    return files | {
        "state": state,
        "model": (path / "model.safetensors").read_bytes(),
        "plan": (path / "plan.json").read_bytes(),
        "samples": (path / "samples.jsonl").read_text(),
        "statistics": (path / "statistics.jsonl").read_text(),
        "metrics": [without_clock(line) for line in lines(path / "metrics.jsonl")],
    }


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def without_clock(record: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key not in CLOCK}


def differences(first: dict[str, Any], second: dict[str, Any]) -> list[str]:
    return [key for key in sorted(first.keys() | second.keys()) if first.get(key) != second.get(key)]
