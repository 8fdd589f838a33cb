"""Published weights by name."""
