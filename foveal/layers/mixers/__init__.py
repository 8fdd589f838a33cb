"""Mixers, one file each. A mixer moves information along the sequence."""
