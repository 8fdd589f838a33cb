"""One label for each image, from a few glimpses of it."""

from typing import Any

from foveal.config import Config
from foveal.data.core.prepared_data import PreparedData
from foveal.data.core.split_data import SplitData
from foveal.data.images.image_examples import ImageClassificationProcessor, ImageExamples
from foveal.tasks.base import TaskSummary
from foveal.tasks.glimpses.model import RecurrentAttentionModel
from foveal.tasks.glimpses.objective import GlimpsesObjective
from foveal.tasks.image_classification import ImageClassificationTask
from foveal.tasks.labeling import summarize_labels


class GlimpsesTask(ImageClassificationTask):
    """The images, labels and scores of task `image-classification`; but no encoder, and no head."""

    def model(self, config: Config, processor: ImageClassificationProcessor) -> Any:
        return RecurrentAttentionModel(config.model, processor.channels, len(processor.labels))

    def model_of_default_size(self, config: Config) -> Any:
        return RecurrentAttentionModel(config.model, config.data.image.channels, self.default_classes)

    def objective(
        self,
        config: Config,
        model: Any,
        processor: ImageClassificationProcessor,
        preview_examples: Any = None,
    ) -> Any:
        return GlimpsesObjective(model, processor.labels, config.model.glimpse.reinforce)

    def summarize(
        self, config: Config, data: PreparedData[ImageClassificationProcessor, SplitData[ImageExamples]]
    ) -> TaskSummary:
        look, size, labels = config.model.glimpse, config.data.image.size, data.processor.labels
        seen = f"{look.count} glimpses of {look.side} x {look.side} pixels of {size} x {size}"
        return TaskSummary(
            "labelled images", f"glimpses: {summarize_labels(labels)} from {seen}", len(labels), "images"
        )
