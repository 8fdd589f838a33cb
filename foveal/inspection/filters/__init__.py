"""The view `filters`: the patterns that the first layer responds to in images."""
