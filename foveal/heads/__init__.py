"""Heads: each maps a memory to features and logits."""
