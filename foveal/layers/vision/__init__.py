"""Layers over images: convolutions, norms, residual blocks, handcrafted features."""
