"""The output on a terminal: console, progress bar, training screen. Imports from `core` only."""
