"""The view `units`: the images that activate the units of a deeper layer most."""
