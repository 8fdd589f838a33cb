"""The view `histograms`: how the outputs and gradients of each layer change in training."""
