"""Every test here has a cache of its own."""

from tests.data.conftest import cache

__all__ = ["cache"]
