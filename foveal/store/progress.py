"""How far the training of a run has come, read from its newest checkpoint without torch."""

from pathlib import Path
from typing import Any

from foveal.core.errors import UserError
from foveal.store.checkpoint_list import list_checkpoints
from foveal.store.regular_files import read_regular
from foveal.store.sealed_json import open_json


def read_progress(checkpoints: Path) -> dict[str, Any]:
    """Return the counters in the newest checkpoint; empty without one, as in a run given to others.

    Raises: UserError: the checkpoint is damaged.
    """
    folders = list_checkpoints(checkpoints)
    if not folders:
        return {}
    file = folders[-1] / "state.json"
    progress: dict[str, Any] = open_json(read_regular(file), str(file))["progress"]
    return progress


def is_at_its_end(checkpoints: Path, weights: Path) -> bool:
    """Return whether a training is at its end: neither stopped before, nor still running.

    A run given to others may have its `weights` alone. A checkpoint that can't be read says nothing: a
    training that still runs may have removed it.
    """
    try:
        progress = read_progress(checkpoints)
    except (UserError, OSError, LookupError, TypeError):
        return False
    return bool(progress.get("finished")) if progress else weights.exists()
