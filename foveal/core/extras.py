"""Packages that few users need. An extra of Foveal installs each of them."""

from importlib import import_module

from foveal.core.errors import UserError

EXTRAS = {"av": "video", "pandas": "pandas", "pyarrow": "parquet"}
"""The extra that installs a package, by the package's name."""


def require(package: str, purpose: str) -> None:
    """Import a package of an extra. `purpose` is what needs the package.

    Raises: UserError: the package is not installed.
    """
    try:
        import_module(package)
    except ImportError:
        install = f"pip install 'foveal[{EXTRAS[package]}]'"
        raise UserError(f"{purpose} needs the package {package}: {install}") from None
