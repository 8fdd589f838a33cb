"""These tests model disks: nothing need really reach the disk."""

from tests.support.fixtures import quick_disk

__all__ = ["quick_disk"]
