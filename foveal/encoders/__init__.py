"""X: what becomes a memory."""
