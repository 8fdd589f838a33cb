"""Recordings: features, and examples of them."""
