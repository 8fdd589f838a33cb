"""The view `updates`: how much a step of the optimizer changes each layer."""
