"""Every test here has a cache of its own."""

from tests.support.fixtures import cache

__all__ = ["cache"]
