"""Navigation on maps by instructions: everything that only this task has."""
