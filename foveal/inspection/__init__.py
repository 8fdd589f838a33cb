"""Views of the inside of models and runs: numbers and pictures."""
