"""Attention maps: how much attention each target word, or each word of a caption, pays to its source."""
