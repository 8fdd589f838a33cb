"""Image generation by DRAW: everything that only this task has."""
