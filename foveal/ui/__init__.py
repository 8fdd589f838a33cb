"""Output on a terminal: console, progress bar, training screen. These files import from `core` alone."""
