"""Metrics as published, with confidence intervals, scores by length, and the worst examples."""
