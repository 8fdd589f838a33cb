"""`foveal.Trainer`: the training of a module of the user's own."""
