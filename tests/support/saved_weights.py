"""The stored weights of a run."""

from pathlib import Path

from torch import Tensor

from foveal.store.sealed import open_tensors


def saved_weights(run: str, name: str = "model.safetensors") -> dict[str, Tensor]:
    """Return the tensors of the file `name` of a run."""
    return open_tensors(Path(run, name).read_bytes(), run)[0]
