"""Foveal trains, compares, looks inside and ships sequence and vision models.

``foveal.load(run)`` opens a run folder: the model, its inputs' processors and its task.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = [
    "RunFailed",
    "UserError",
    "__version__",
    "load",
    "load_plugin",
    "register_mixer",
    "register_task",
]

_EXPORTS = {
    "RunFailed": "foveal.core.errors",
    "UserError": "foveal.core.errors",
    "load": "foveal.tasks.session",
    "load_plugin": "foveal.plugins.loading",
    "register_mixer": "foveal.layers.mixers.registry",
    "register_task": "foveal.tasks.registry",
}
"""The public names, and the modules that define them."""

if TYPE_CHECKING:
    from foveal.core.errors import RunFailed, UserError
    from foveal.layers.mixers.registry import register_mixer
    from foveal.plugins.loading import load_plugin
    from foveal.tasks.registry import register_task
    from foveal.tasks.session import load


def __getattr__(name: str) -> Any:
    # torch takes seconds to import, so `import foveal` must not pull it in.
    if name in _EXPORTS:
        return getattr(import_module(_EXPORTS[name]), name)
    raise AttributeError(f"module 'foveal' has no attribute {name!r}")
