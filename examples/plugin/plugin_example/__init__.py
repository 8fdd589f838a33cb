"""One part of each kind for Foveal. Importing the package registers them."""

from plugin_example import callback, dataset, encoder, head, metric, mixer, network, task

__all__ = ["callback", "dataset", "encoder", "head", "metric", "mixer", "network", "task"]
