"""Recurrent cells and time mixing, step by step and fused."""
