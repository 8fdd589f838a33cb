"""One part of each kind for Foveal. Importing the package registers them."""

from . import callback, dataset, encoder, head, metric, mixer, network, task, view

__all__ = ["callback", "dataset", "encoder", "head", "metric", "mixer", "network", "task", "view"]
