"""Batch to result: one file per task."""
