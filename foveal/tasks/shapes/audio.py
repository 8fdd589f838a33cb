"""Tasks that read recordings."""

from abc import ABC
from typing import Any, ClassVar

from foveal.data.audio.audio_source import AudioSource
from foveal.data.pairs.source import Source
from foveal.encoders.audio import ConvSubsamplingEncoder, PyramidalLSTMEncoder
from foveal.models.encoder import audio_encoder
from foveal.tasks.shapes.examples import ExampleTask


class AudioTask(ExampleTask, ABC):
    """Base class of tasks whose examples are recordings."""

    source: ClassVar[Source[Any]] = AudioSource()
    source_kind = "audio"
    encoders = ("pyramid", "convolution")
    length_unit = "frames"

    def encoder(self) -> PyramidalLSTMEncoder | ConvSubsamplingEncoder:
        """Return the encoder of log-mel frames."""
        data, processor = self.config.data, self.processor
        bins = data.mel_bins if processor is None else processor.source.settings.mel_bins
        return audio_encoder(self.config.model.encoder, bins)

    def source_in_words(self) -> str:
        """Return a description of the features of a recording."""
        settings = self.processor.source.settings
        return f"{settings.mel_bins} mel bands of {settings.sample_rate:,} samples per second"

    def describe_size(self, facts: dict[str, Any]) -> str:
        return f"{facts['examples']:,} of {facts['frames']:,} frames"
