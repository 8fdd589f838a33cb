"""Models from a config, and named networks with their sizes."""
