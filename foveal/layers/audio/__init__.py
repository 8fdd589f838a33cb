"""Layers of audio encoders."""
