"""The view `confusion`: which classes a run takes for which."""
