"""Interrupts a running command at a chosen place: at the n-th call of some function."""

import importlib
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks import kill

INTERRUPT_POINTS = {
    "data preparation": ("foveal.data.text.token_store:file_sha256", 1),
    "dry run": ("foveal.api.training.cost:dry_run", 1),
    "run made": ("foveal.api.training.prepare:train_and_report", 1),
    "first steps": ("foveal.training.trainer:train_step", 3),
    "evaluation": ("foveal.training.evaluate:starting_carry", 2),
    "sample": ("foveal.objectives.language_model:generate_text", 1),
    "best weights": ("foveal.store.durable:atomic_write", 3),
    "checkpoint": ("foveal.store.checkpoint:seal_json", 1),
    "after a sample": ("foveal.training.trainer:train_step", 7),
    "last steps": ("foveal.training.trainer:train_step", 11),
    "final scoring": ("foveal.api.training.report:evaluate", 1),
    "picture": ("foveal.api.training.report:curves_payload", 1),
}
"""Where a run of 12 steps in a cache of its own is struck: `module:function` and which call of it."""
SETTINGS = (
    *kill.SHARED,
    *kill.MIXERS["lstm"],
    "training.budget=12steps",
    "training.evaluate_every=6",
)
TRAIN_COMMAND = ("train", "text.txt", "--run", "run", "--model", "lstm", *SETTINGS)


def act_at(place: str, act: Callable[[], object]) -> Any:
    """Return a context that calls `act()` before the chosen call."""
    (target, number), calls = INTERRUPT_POINTS[place], 0
    module, name = target.split(":")
    real = getattr(importlib.import_module(module), name)

    def struck(*arguments: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == number:
            act()
        return real(*arguments, **named)

    return patch(f"{module}.{name}", struck)


def kill_itself_at(folder: Path, arguments: list[str]) -> None:
    """Run a command in its own process. `arguments[0]` is the place at which it kills itself."""
    place, *rest = arguments
    with act_at(place, lambda: os.kill(os.getpid(), signal.SIGKILL)):
        kill.command(folder, rest)
