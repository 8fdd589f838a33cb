"""The mathematics of the layers as plain functions: the reference first, fast paths beside it."""
