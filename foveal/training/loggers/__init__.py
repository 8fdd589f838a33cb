"""Loggers that pass the numbers of a training on to other programs: a file each, found by its name."""
