"""What a person sees on a terminal: console, progress bar, training screen."""
