"""Waveforms to features."""
