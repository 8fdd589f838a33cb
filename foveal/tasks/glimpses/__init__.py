"""Image classification by glimpses: everything that only this task has."""
