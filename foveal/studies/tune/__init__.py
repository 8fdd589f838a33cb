"""Choosing hyperparameters in seven steps, each explained."""
