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
    "capture",
    "check",
    "check_data",
    "compare",
    "compare_finetuning",
    "create_model",
    "generate",
    "list_models",
    "load",
    "load_plugin",
    "plan",
    "register_callback",
    "register_dataset",
    "register_encoder",
    "register_head",
    "register_metric",
    "register_mixer",
    "register_model",
    "register_task",
    "register_view",
    "stream",
    "train",
    "tune",
]

_EXPORTS = {
    "Callback": "foveal.core.callbacks",
    "Run": "foveal.api.run",
    "RunFailed": "foveal.core.errors",
    "StopTraining": "foveal.core.callbacks",
    "Trainer": "foveal.api.own_module.trainer",
    "UserError": "foveal.core.errors",
    "capture": "foveal.inspection.capture.capture",
    "check": "foveal.api.check",
    "check_data": "foveal.api.data_check",
    "compare": "foveal.api.compare",
    "compare_finetuning": "foveal.api.compare_finetuning",
    "create_model": "foveal.api.create_model",
    "generate": "foveal.api.generate",
    "list_models": "foveal.api.create_model",
    "load": "foveal.api.load",
    "load_plugin": "foveal.plugins.loading",
    "plan": "foveal.api.plan",
    "register_callback": "foveal.training.callback_registry",
    "register_dataset": "foveal.data.datasets.dataset_registry",
    "register_encoder": "foveal.models.encoder_registry",
    "register_head": "foveal.heads.registry",
    "register_metric": "foveal.metrics.registry",
    "register_mixer": "foveal.layers.mixers.registry",
    "register_model": "foveal.models.network_registry",
    "register_task": "foveal.tasks.registry",
    "register_view": "foveal.inspection.registry",
    "stream": "foveal.api.generate",
    "train": "foveal.api.train",
    "tune": "foveal.api.tune",
}
"""The public names, and the modules that define them."""
_PACKAGES = ("layers", "metrics", "sklearn")
"""Packages with public names of their own."""

if TYPE_CHECKING:
    from foveal.api.check import check
    from foveal.api.compare import compare
    from foveal.api.compare_finetuning import compare_finetuning
    from foveal.api.create_model import create_model, list_models
    from foveal.api.data_check import check_data
    from foveal.api.generate import generate, stream
    from foveal.api.load import load
    from foveal.api.own_module.trainer import Trainer
    from foveal.api.plan import plan
    from foveal.api.run import Run
    from foveal.api.train import train
    from foveal.api.tune import tune
    from foveal.core.callbacks import Callback, StopTraining
    from foveal.core.errors import RunFailed, UserError
    from foveal.data.datasets.dataset_registry import register_dataset
    from foveal.heads.registry import register_head
    from foveal.inspection.capture.capture import capture
    from foveal.inspection.registry import register_view
    from foveal.layers.mixers.registry import register_mixer
    from foveal.metrics.registry import register_metric
    from foveal.models.encoder_registry import register_encoder
    from foveal.models.network_registry import register_model
    from foveal.plugins.loading import load_plugin
    from foveal.tasks.registry import register_task
    from foveal.training.callback_registry import register_callback


def __getattr__(name: str) -> Any:
    # torch takes seconds to import, so `import foveal` must not pull it in.
    if name in _EXPORTS:
        return getattr(import_module(_EXPORTS[name]), name)
    if name in _PACKAGES:
        return import_module(f"foveal.{name}")
    raise AttributeError(f"module 'foveal' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_PACKAGES])
