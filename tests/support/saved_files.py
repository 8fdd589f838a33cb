"""The files of checkpoints, as tests read and write them."""

from pathlib import Path

from torch import Tensor

from foveal.distributed.placement import WHOLE_WEIGHTS, Placement
from foveal.store.checkpoint import Checkpoint, Draft, write_files
from foveal.training.placed_weights import Held


def save_files(folder: Path, step: int, files: dict[str, bytes], previous: Path | None, run: str) -> Path:
    """Write a checkpoint of the given contents."""
    draft = Draft(folder, step, run)
    listing = write_files(draft.part, draft.path, ((name, [content]) for name, content in files.items()))
    return draft.publish([listing], previous)


def contents(checkpoint: Checkpoint | None) -> dict[str, bytes]:
    """Return the contents of the files of a checkpoint, which exists."""
    assert checkpoint
    return {name: file.read() for name, file in checkpoint.files.items()}


def whole_values(held: Held, placement: Placement) -> dict[str, Tensor]:
    """Return values for whole weights, from those for parts. All ranks call this together."""
    return {
        name: value if own is None else placement.whole(value, own)
        for name, (value, own) in sorted(held.items())
    }


def values(held: Held) -> dict[str, Tensor]:
    """Return the values for whole weights of a single process."""
    return whole_values(held, WHOLE_WEIGHTS)
