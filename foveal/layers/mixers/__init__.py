"""Mixers, one per file. A mixer moves information along the sequence."""
