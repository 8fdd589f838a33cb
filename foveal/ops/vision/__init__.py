"""Convolution and histograms over images."""
