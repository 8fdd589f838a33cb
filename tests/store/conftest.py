"""These tests model disks: nothing need really reach the disk."""

from tests.training.conftest import quick_disk

__all__ = ["quick_disk"]
