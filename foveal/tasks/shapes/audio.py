"""Tasks that read recordings."""

from abc import ABC
from typing import Any, ClassVar

from torch import nn

from foveal.core.errors import UserError
from foveal.data.audio.audio_source import AudioSource
from foveal.data.pairs.source import Source
from foveal.models.encoder import MAX_AUDIO_POSITIONS
from foveal.models.encoder_registry import SeriesSizes, make_encoder
from foveal.ops.audio.log_mel import mel_filters, window_samples
from foveal.tasks.shapes.examples import ExampleTask


class AudioTask(ExampleTask, ABC):
    """Base class of tasks whose examples are recordings."""

    source: ClassVar[Source[Any]] = AudioSource()
    source_kind = "audio"
    encoders: ClassVar[tuple[str, ...]] = ("pyramid", "convolution")
    encoder_source = "audio"
    length_unit = "frames"

    def check(self) -> None:
        super().check()
        bins, rate = self.config.data.mel_bins, self.config.data.sample_rate
        try:
            mel_filters(bins, rate, window_samples(rate))
        except UserError:
            raise ValueError(
                f"data.mel_bins={bins} is too many for data.sample_rate={rate}: some mel bands lie between "
                "two frequencies of a frame; lower data.mel_bins, or raise data.sample_rate"
            ) from None

    @property
    def source_sizes(self) -> SeriesSizes:
        data, processor = self.config.data, self.processor
        bins = data.mel_bins if processor is None else processor.source.settings.mel_bins
        return SeriesSizes(bins, MAX_AUDIO_POSITIONS)

    def encoder(self) -> nn.Module:
        """Return the encoder of log-mel frames, which a network of series reads as channels."""
        return make_encoder(self.config.model.encoder, self.source_sizes)

    def source_in_words(self) -> str:
        """Return a description of the features of a recording."""
        settings = self.processor.source.settings
        return f"{settings.mel_bins} mel bands of {settings.sample_rate:,} samples per second"

    def describe_size(self, facts: dict[str, Any]) -> str:
        return f"{facts['examples']:,} of {facts['frames']:,} frames"
