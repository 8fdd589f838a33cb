"""Foveal trains, compares, looks inside and ships sequence and vision models.

``foveal.load(run)`` opens a run folder: the model, its inputs' processors and its task.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["RunFailed", "UserError", "__version__", "create_model", "list_models", "load"]

_EXPORTS = {
    "RunFailed": "foveal.core.errors",
    "UserError": "foveal.core.errors",
    "create_model": "foveal.api.create_model",
    "list_models": "foveal.api.create_model",
    "load": "foveal.tasks.session",
}
"""The public names, and the modules that define them."""

if TYPE_CHECKING:
    from foveal.api.create_model import create_model, list_models
    from foveal.core.errors import RunFailed, UserError
    from foveal.tasks.session import load


def __getattr__(name: str) -> Any:
    # torch takes seconds to import, so `import foveal` must not pull it in.
    if name in _EXPORTS:
        return getattr(import_module(_EXPORTS[name]), name)
    raise AttributeError(f"module 'foveal' has no attribute {name!r}")
