"""Packages that few users need. An extra of Foveal installs each of them."""

from importlib import import_module

from foveal.core.errors import UserError

EXTRAS = {
    "av": "video",
    "fastapi": "page",
    "mlflow": "mlflow",
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
        install = f"pip install 'foveal[{EXTRAS[package]}]'"
        raise MissingPackageError(f"{purpose} needs the package {project_name(package)}: {install}") from None
