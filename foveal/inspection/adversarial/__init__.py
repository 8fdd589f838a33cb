"""The view `adversarial`: the smallest change of an image's pixels that changes its label."""
