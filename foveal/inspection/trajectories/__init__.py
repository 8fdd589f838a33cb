"""The view `trajectories`: the path of a layer's state through a text, on its two principal axes."""
