"""The view `model-map`: the graph of a model, with shapes, parameters and multiply-adds."""
