"""A training from the user's options to the trained run: choose, prepare, train, report, resume."""
