"""Tasks that give an image one label."""

from abc import ABC

from foveal.tasks.shapes.images import ImageTask
from foveal.tasks.shapes.labeling import ClassificationTask


class ImageLabelTask(ImageTask, ClassificationTask, ABC):
    """Images, labels and metrics. A subclass defines the model."""

    columns = ("label",)
    default_classes = 10
    loss_unit = "image"
    examples_in_words = "labeled images"
    speed_unit = "images"
