"""Images that a model learns to draw."""

from typing import Any

from torch import nn

from foveal.config import Config
from foveal.core.errors import UserError
from foveal.core.progress import ProgressCallback
from foveal.data.core.examples import Examples
from foveal.data.core.prepared_data import PreparedData
from foveal.data.core.split_data import SplitData
from foveal.data.images.image_examples import ImageExamples
from foveal.tasks.base import PredictedIds, TaskSummary
from foveal.tasks.draw.model import DrawModel
from foveal.tasks.draw.objective import DrawObjective
from foveal.tasks.draw.unlabeled_images import UnlabeledImageFormat, UnlabeledImageProcessor
from foveal.tasks.image_source import ImageTask


class ImageGenerationTask(ImageTask):
    def __init__(self) -> None:
        super().__init__(UnlabeledImageFormat())

    def model(self, config: Config, processor: UnlabeledImageProcessor) -> nn.Module:
        return DrawModel(config.model, processor.size, processor.size)

    def model_of_default_size(self, config: Config) -> nn.Module:
        return DrawModel(config.model, config.data.image.size, config.data.image.size)

    def objective(
        self, config: Config, model: Any, processor: UnlabeledImageProcessor, preview_examples: Any = None
    ) -> DrawObjective:
        return DrawObjective(model)

    def summarize(
        self, config: Config, data: PreparedData[UnlabeledImageProcessor, SplitData[ImageExamples]]
    ) -> TaskSummary:
        draw, size = config.model.draw, config.data.image.size
        told = f"image-generation: {size} x {size} grey pixels in {draw.steps} steps"
        return TaskSummary("images", told, None, "images")

    def predicted_texts(
        self, config: Config, model: Any, processor: Any, examples: Examples, progress: ProgressCallback
    ) -> list[str]:
        raise UserError("a model that draws has no answers: use foveal generate, or evaluate")

    def score(
        self,
        config: Config,
        model: Any,
        processor: Any,
        data: Any,
        predicted_ids: PredictedIds,
        progress: ProgressCallback,
    ) -> None:
        """The bound alone."""
