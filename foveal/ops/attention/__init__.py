"""Attention: the equations, and the fast paths beside them."""
