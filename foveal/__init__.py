"""Foveal trains, compares, looks inside and ships sequence and vision models.

``foveal.load(run)`` opens a run folder: the model, its inputs' processors and its task.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["Callback", "RunFailed", "StopTraining", "UserError", "__version__", "load"]

_EXPORTS = {
    "Callback": "foveal.core.callbacks",
    "RunFailed": "foveal.core.errors",
    "StopTraining": "foveal.core.callbacks",
    "UserError": "foveal.core.errors",
    "load": "foveal.tasks.session",
}
"""The public names, and the modules that define them."""

if TYPE_CHECKING:
    from foveal.core.callbacks import Callback, StopTraining
    from foveal.core.errors import RunFailed, UserError
    from foveal.tasks.session import load


def __getattr__(name: str) -> Any:
    # torch takes seconds to import, so `import foveal` must not pull it in.
    if name in _EXPORTS:
        return getattr(import_module(_EXPORTS[name]), name)
    raise AttributeError(f"module 'foveal' has no attribute {name!r}")
