"""What every mixer, encoder and head promises, as functions that check a module."""
