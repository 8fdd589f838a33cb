"""Attention maps: how much each target word, or each word of a caption, reads of its source."""
