"""Every test here has a cache of its own, and takes as long as it needs."""

from hypothesis import settings

from tests.support.fixtures import cache

__all__ = ["cache"]

settings.register_profile("patient", deadline=None)  # a busy machine is no failure
settings.load_profile("patient")
