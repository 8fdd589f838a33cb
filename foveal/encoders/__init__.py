"""Input to Memory."""
