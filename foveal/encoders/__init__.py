"""Encoders: each maps a source to a memory."""
