"""The table of layers: outputs, parameters, multiply-adds, receptive fields."""
