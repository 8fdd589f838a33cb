"""The view `inversion`: images made from the features of an image at several layers."""
