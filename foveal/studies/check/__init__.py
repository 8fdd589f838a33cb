"""`foveal check`: whether a model, a run, a plugin or a module of the user's own keeps the laws."""
