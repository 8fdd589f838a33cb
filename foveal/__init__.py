"""Foveal trains, compares, looks inside and ships sequence and vision models.

``foveal.train(data)`` trains a model on files or values in memory, and returns a run. ``foveal.load(run)``
opens the folder of a run.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = [
    "Callback",
    "Run",
    "RunFailed",
    "StopTraining",
    "Trainer",
    "UserError",
    "__version__",
    "create_model",
    "list_models",
    "load",
    "train",
]

_EXPORTS = {
    "Callback": "foveal.core.callbacks",
    "Run": "foveal.api.run",
    "RunFailed": "foveal.core.errors",
    "StopTraining": "foveal.core.callbacks",
    "Trainer": "foveal.api.module_trainer",
    "UserError": "foveal.core.errors",
    "create_model": "foveal.api.create_model",
    "list_models": "foveal.api.create_model",
    "load": "foveal.api.run",
    "train": "foveal.api.train",
}
"""The public names, and the modules that define them."""

if TYPE_CHECKING:
    from foveal.api.create_model import create_model, list_models
    from foveal.api.module_trainer import Trainer
    from foveal.api.run import Run, load
    from foveal.api.train import train
    from foveal.core.callbacks import Callback, StopTraining
    from foveal.core.errors import RunFailed, UserError


def __getattr__(name: str) -> Any:
    # torch takes seconds to import, so `import foveal` must not pull it in.
    if name in _EXPORTS:
        return getattr(import_module(_EXPORTS[name]), name)
    raise AttributeError(f"module 'foveal' has no attribute {name!r}")
