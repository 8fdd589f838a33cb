"""One label for each recording."""

from collections.abc import Mapping
from typing import Any, ClassVar

from foveal.data.audio import audio_classification
from foveal.data.audio.audio_classification import AudioClassificationProcessor
from foveal.data.core.examples import Examples
from foveal.data.core.prepared_data import PreparedData
from foveal.data.core.split_data import SplitData
from foveal.data.files.format import DataFormat
from foveal.data.open import OpenedData
from foveal.encoders.audio import ConvSubsamplingEncoder, PyramidalLSTMEncoder
from foveal.models.encoder import audio_encoder
from foveal.tasks.base import TaskSummary
from foveal.tasks.shapes.labeling import ClassificationTask, summarize_labels


class AudioClassificationTask(ClassificationTask):
    name = "audio-classification"
    purpose = "Label each recording."
    preset = "audio-classification"
    form: ClassVar[DataFormat] = audio_classification
    reads = "audio"
    encoders = ("pyramid", "convolution")
    columns = ("label",)
    loss_unit = "recording"
    length_unit = "frames"

    @classmethod
    def recognizes(cls, data: OpenedData, named: Mapping[str, object]) -> int:
        """Return 1 for recordings."""
        return int(data.kind == "audio")

    def encoder(self) -> PyramidalLSTMEncoder | ConvSubsamplingEncoder:
        data, processor = self.config.data, self.processor
        bins = data.mel_bins if processor is None else processor.audio.settings.mel_bins
        return audio_encoder(self.config.model.encoder, bins)

    def summarize(
        self, prepared: PreparedData[AudioClassificationProcessor, SplitData[Examples]]
    ) -> TaskSummary:
        audio, labels = prepared.processor.audio.settings, prepared.processor.labels
        source = f"{audio.mel_bins} mel bands of {audio.sample_rate:,} samples a second"
        task = f"{self.name}: {summarize_labels(labels)} from {source}"
        return TaskSummary("labelled recordings", task, len(labels), "frames")

    def describe_size(self, facts: dict[str, Any]) -> str:
        return f"{facts['examples']:,} of {facts['frames']:,} frames"
