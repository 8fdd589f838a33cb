"""The view `activations`: how large the outputs of each layer are."""
