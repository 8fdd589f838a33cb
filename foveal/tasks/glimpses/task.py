"""One label for each image, from a few glimpses of the image (Mnih et al. 2014)."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field

from foveal.config.values import NonNegativeFloat, PositiveFloat, Size
from foveal.models.stack_settings import VECTOR_STACK, keys_below
from foveal.tasks.base import TaskSettings
from foveal.tasks.glimpses.model import RecurrentAttentionModel
from foveal.tasks.glimpses.objective import GlimpsesObjective
from foveal.tasks.shapes.image_labels import ImageLabelTask
from foveal.tasks.shapes.images import check_single_view


class GlimpsesSettings(TaskSettings):
    glimpses: Size = 6
    """Glimpses of an image; the first is of the center."""
    glimpse_size: Size = 8
    """Side of a glimpse, in pixels."""
    glimpse_scales: Annotated[int, Field(ge=1, le=8)] = 1
    """Squares of a glimpse around one place.

    Each is twice as wide as the square before, and has as many pixels."""
    std: PositiveFloat = 0.2
    """Standard deviation of the places that training samples; an image is 2 wide."""
    reinforce_coefficient: NonNegativeFloat = 0.01
    """Coefficient of REINFORCE in the objective."""


class GlimpsesTask(ImageLabelTask):
    """The images, labels and metrics of image classification, but neither encoder nor head."""

    name = "glimpses"
    purpose = "Label each image by a few glimpses of it."
    preset = "glimpses"
    Settings = GlimpsesSettings
    settings: GlimpsesSettings
    refused_settings: ClassVar[Mapping[str, str]] = {
        "label_smoothing": "what counts is whether the answer is right"
    }
    encoders = ("none",)
    balances_experts = False
    takes_heads = False
    suggested_view = "glimpses"

    @property
    def model_sizes(self) -> None:
        """None: the model returns the places of its glimpses with the logits."""
        return None

    def settings_read(self) -> set[str]:
        return super().settings_read() - {"model.head_pooling"} | keys_below("model", VECTOR_STACK)

    def check(self) -> None:
        super().check()
        check_single_view(self.config, "glimpse")

    def encoder(self) -> Any:
        raise NotImplementedError

    def new_model(self) -> RecurrentAttentionModel:
        return self._model(self.processor.source.channels, len(self.processor.target.labels))

    def example_model(self) -> RecurrentAttentionModel:
        return self._model(self.config.data.image.channels, self.default_classes)

    def _model(self, channels: int, classes: int) -> RecurrentAttentionModel:
        settings = self.settings
        return RecurrentAttentionModel(
            self.config.model,
            channels,
            classes,
            count=settings.glimpses,
            side=settings.glimpse_size,
            scales=settings.glimpse_scales,
            std=settings.std,
        )

    def objective(self, preview_examples: Any = None) -> Any:
        return GlimpsesObjective(
            self.model, self.processor.target.labels, self.settings.reinforce_coefficient
        )

    def source_in_words(self) -> str:
        side = self.settings.glimpse_size
        image = super().source_in_words().removesuffix(" pixels")
        return f"{self.settings.glimpses} glimpses of {side} x {side} pixels of {image}"
