"""Clips: decoding, files, batches, and examples of them."""
