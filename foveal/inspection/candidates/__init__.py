"""The view `candidates`: the likeliest tokens at each step of a text that a run writes."""
