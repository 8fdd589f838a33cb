"""Foveal trains, compares, looks inside and ships sequence and vision models.

``foveal.load(run)`` opens a run folder: the model, its inputs' processors and its task.
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["__version__", "load"]

if TYPE_CHECKING:
    from foveal.tasks.session import load


def __getattr__(name: str) -> Any:
    # torch takes seconds to import, so `import foveal` must not pull it in.
    if name == "load":
        from foveal.tasks.session import load

        return load
    raise AttributeError(f"module 'foveal' has no attribute {name!r}")
