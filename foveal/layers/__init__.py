"""Layers: modules that take plain numbers, one idea a file."""
