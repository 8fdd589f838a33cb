"""Pictures of payloads: a file for each kind of panel, and `compose` for the whole."""
