"""Packages that few users need. An extra of Foveal installs each of them."""

import sys
from importlib import import_module
from importlib.util import find_spec

from foveal.core.errors import UserError

EXTRAS = {
    "av": "video",
    "fastapi": "page",
    "fsspec": "remote",
    "mlflow": "mlflow",
    "optuna": "tune",
    "pandas": "pandas",
    "pyarrow": "parquet",
    "sklearn": "sklearn",
    "tensorboard": "tensorboard",
    "trackio": "trackio",
    "uvicorn": "page",
    "wandb": "wandb",
}
"""The extra that installs a package, by the package's name."""
_PROJECTS = {"sklearn": "scikit-learn"}
"""The names under which packages are published, where they have another."""


def project_name(package: str) -> str:
    """Return the name under which a package is published."""
    return _PROJECTS.get(package, package)


class MissingPackageError(UserError, ImportError):
    """A package of an extra is not installed."""


def require(package: str, purpose: str) -> None:
    """Import a package of an extra. `purpose` is what needs the package.

    Raises: MissingPackageError: the package is not installed.
    """
    try:
        import_module(package)
    except ImportError:
        raise _missing(package, purpose) from None


def check_installed(package: str, purpose: str) -> None:
    """Check that a package of an extra is there, without the time of its import. `purpose` is what needs it.

    Raises: MissingPackageError: the package is not installed.
    """
    if (sys.modules[package] if package in sys.modules else find_spec(package)) is None:
        raise _missing(package, purpose)


def _missing(package: str, purpose: str) -> MissingPackageError:
    install = f"pip install 'foveal[{EXTRAS[package]}]'"
    return MissingPackageError(f"{purpose} needs the package {project_name(package)}: {install}")
