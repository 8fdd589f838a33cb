"""Visual question answering: everything that only these three tasks have."""
