"""Modules that take plain numbers; one idea per file."""
