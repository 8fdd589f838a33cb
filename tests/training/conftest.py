"""These tests kill processes and model disks, not the machine: nothing need really reach the disk."""

from tests.support.fixtures import quick_disk

__all__ = ["quick_disk"]
