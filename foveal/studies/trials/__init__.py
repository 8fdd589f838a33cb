"""Trainings of a study: its folder, and each training in a process of its own."""
