"""Tasks that read clips, with any target."""

from abc import ABC
from typing import Any

from torch import nn

from foveal.data.video.clip_source import ClipSource
from foveal.models.encoder_registry import ClipSizes, make_encoder
from foveal.tasks.shapes.examples import ExampleTask
from foveal.tasks.shapes.labeling import LabelingTask

CLIP_ENCODERS = ("frames", "conv3d")


class ClipTask(ExampleTask, ABC):
    """Base class of tasks whose examples are clips."""

    source = ClipSource()
    source_kind = "clip"
    encoders = CLIP_ENCODERS
    encoder_source = "clip"
    length_unit = "frames"
    suggested_view = "filmstrip"

    @property
    def source_sizes(self) -> ClipSizes:
        image = self.config.data.image
        return ClipSizes(image.channels, image.size, self.config.data.max_length)

    def encoder(self) -> nn.Module:
        """Return the encoder for clips of the configured size."""
        return make_encoder(self.config.model.encoder, self.source_sizes)

    def source_in_words(self) -> str:
        """Return the size of the frames that the model reads."""
        size = self.config.data.image.size
        return f"{size} x {size} pixels"

    def describe_size(self, facts: dict[str, Any]) -> str:
        return f"{facts['examples']:,} of {facts['frames']:,} frames"


class ClipLabelingTask(ClipTask, LabelingTask, ABC):
    """Base class of tasks that label clips or their frames."""

    examples_in_words = "labeled clips"
    speed_unit = "frames"
