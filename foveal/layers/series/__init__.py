"""Layers over the steps of a series that read the whole series at once."""
