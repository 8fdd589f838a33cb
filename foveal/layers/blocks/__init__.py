"""Blocks and stacks: norm, mixer, residual connection, feed-forward layer."""
