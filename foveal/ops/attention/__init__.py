"""Attention: the equations, and fast paths beside them."""
