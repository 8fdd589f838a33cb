"""Rows, splits, examples and batches: the common parts of all kinds of data."""
