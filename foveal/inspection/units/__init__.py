"""The view `units`: the images that most activate the units of a deeper layer."""
