"""How much of a trained encoder to train on new images: the usual advice, tested against all alternatives."""
