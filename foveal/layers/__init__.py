"""Layers: modules that take plain numbers, one idea per file."""
