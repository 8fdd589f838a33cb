"""The kinds of encoder that a config may name: each file registers those of one source."""
