"""Rows, splits, examples and batches, which all kinds of data share."""
