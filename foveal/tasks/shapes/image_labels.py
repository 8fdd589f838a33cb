"""Tasks that give an image one label."""

from abc import ABC
from typing import Any

from foveal.core.progress import ProgressCallback, iterate_batches
from foveal.data.core.prepared_data import PreparedData
from foveal.data.core.split_data import SplitData
from foveal.data.images.image_examples import ImageExamples
from foveal.data.pairs.pair import PairProcessor
from foveal.tasks.results import TaskSummary
from foveal.tasks.shapes.images import ImageTask
from foveal.tasks.shapes.labeling import ClassificationTask, summarize_labels


class ImageLabelTask(ImageTask, ClassificationTask, ABC):
    """Images, labels and metrics. A subclass defines the model."""

    columns = ("label",)
    default_classes = 10
    loss_unit = "image"

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

    def summarize(self, prepared: PreparedData[PairProcessor, SplitData[ImageExamples]]) -> TaskSummary:
        labels = prepared.processor.target.labels
        task = f"{self.name}: {summarize_labels(labels)} from {self.source_in_words()}"
        return TaskSummary("labeled images", task, len(labels), "images")

    def source_in_words(self) -> str:
        """Return a description of the size of the images that the model reads."""
        size = self.config.data.image.size
        return f"{size} x {size} pixels"
