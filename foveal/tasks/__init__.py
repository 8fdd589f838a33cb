"""The tasks, one file or folder each, with everything that only this task has."""
