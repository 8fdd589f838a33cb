"""Training of a user's own module on any iterable of batches: adapters to the trainer."""
