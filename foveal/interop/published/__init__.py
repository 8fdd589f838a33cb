"""Weights that were published for a network of ours, by name."""
