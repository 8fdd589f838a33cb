"""Tasks that give an image one label."""

from abc import ABC
from typing import Any

from foveal.core.progress import ProgressCallback, iterate_batches
from foveal.tasks.shapes.images import ImageTask
from foveal.tasks.shapes.labeling import ClassificationTask


class ImageLabelTask(ImageTask, ClassificationTask, ABC):
    """Images, labels and metrics. A subclass defines the model."""

    columns = ("label",)
    default_classes = 10
    loss_unit = "image"
    examples_in_words = "labeled images"
    speed_unit = "images"

    def predict_with_probabilities(
        self, examples: Any, progress: ProgressCallback
    ) -> tuple[list[str], list[float] | None]:
        objective = self.objective()
        names, probabilities = list[str](), list[float]()
        for batch in iterate_batches(self.example_batches(examples), progress):
            highest = objective.predict_batch(batch).max(1)
            names += [self.processor.target.labels[index] for index in highest.indices.tolist()]
            probabilities += highest.values.tolist()
        return names, probabilities
