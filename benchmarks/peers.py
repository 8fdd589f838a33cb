"""Packages that benchmarks compare with. None of them is a dependency."""

import sys
from importlib import import_module
from typing import Any


def peer(module: str, package: str) -> Any:
    """Import a module, or exit with a line that says what to install."""
    try:
        return import_module(module)
    except ImportError as error:
        sys.exit(f"this benchmark needs {package}, which can't be imported ({error}): pip install {package}")
