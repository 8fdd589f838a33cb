"""The curves of a training, with their diagnosis; several runs over each other."""
