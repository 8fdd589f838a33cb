"""The view of attention: what was read of a source at each word of the target."""
