"""Measured series: files, and examples of them."""
