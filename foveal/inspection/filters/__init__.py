"""The view `filters`: what the first layer looks for in images."""
