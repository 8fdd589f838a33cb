"""Questions about images: everything that only these three tasks have."""
