"""`foveal.capture`: the inner values of a model while it runs, by name."""
