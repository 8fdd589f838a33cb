"""Tasks that read clips, with any target."""

from abc import ABC
from typing import Any

from foveal.config import Config
from foveal.data.video.clip_source import ClipSource
from foveal.encoders.video import Conv3dEncoder, FrameEncoder
from foveal.models.video import video_encoder
from foveal.tasks.shapes.examples import ExampleTask
from foveal.tasks.shapes.labeling import LabelingTask

CLIP_ENCODERS = ("frames", "conv3d")


def clip_encoder_for(config: Config) -> FrameEncoder | Conv3dEncoder:
    """Return the encoder for clips of the configured size."""
    return video_encoder(config.model.encoder, config.data.image, config.data.max_length)


class ClipTask(ExampleTask, ABC):
    """Base class of tasks whose examples are clips."""

    source = ClipSource()
    source_kind = "clip"
    encoders = CLIP_ENCODERS
    length_unit = "frames"
    suggested_view = "filmstrip"

    def encoder(self) -> FrameEncoder | Conv3dEncoder:
        return clip_encoder_for(self.config)

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
