"""The view `positions`: the vectors or angles by which a model knows positions."""
