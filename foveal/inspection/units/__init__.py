"""The view `units`: what moves the units of a deeper layer."""
