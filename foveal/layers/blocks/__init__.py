"""Blocks and stacks: norm, mixer, residual, feed-forward."""
