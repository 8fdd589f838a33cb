"""Foundations used by every other package: state trees, memory, results, taps, runtime and errors."""
