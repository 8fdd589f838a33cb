"""The run of a fitted estimator in a pickle: its path and a hash, and not its weights."""

import hashlib
from pathlib import Path
from typing import NamedTuple

from foveal.api.run import Run
from foveal.core.errors import UserError
from foveal.store.durable import file_sha256
from foveal.store.manifest import MANIFEST_FILE
from foveal.store.run import WEIGHTS_FILE


class KeptRun(NamedTuple):
    """A run by its path, and the hash of its settings, processor and weights."""

    path: str
    device: str
    sha256: str

    @classmethod
    def of(cls, run: Run) -> "KeptRun":
        """Return the run as it is now.

        Raises: UserError: the run is gone.
        """
        path = run.path.resolve()
        return cls(str(path), run.device, _hash(path))

    def open(self) -> Run:
        """Return the run.

        Raises: UserError: the run is gone, or has changed.
        """
        path = Path(self.path)
        if _hash(path) != self.sha256:
            raise UserError(
                f"{path}: the run of this estimator has changed since; restore the run, or fit again"
            )
        return Run(path, self.device)


def _hash(path: Path) -> str:
    """Return a hash of the weights, and of the file with the hashes of settings and processor."""
    files = [path / MANIFEST_FILE, path / WEIGHTS_FILE]
    if not all(file.is_file() for file in files):
        raise UserError(
            f"{path}: the run of this estimator is gone; restore the run, or fit again (run= names a "
            "folder to keep)"
        )
    return hashlib.sha256("".join(map(file_sha256, files)).encode()).hexdigest()
