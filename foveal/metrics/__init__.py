"""Metrics as published, with intervals, by length, and the worst examples."""
