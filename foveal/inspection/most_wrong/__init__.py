"""The view `most-wrong`: the held-out rows with the most probable wrong labels."""
