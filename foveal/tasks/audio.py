"""From a recording to its text, or to a label."""

from typing import Any

from foveal.config import Config
from foveal.data.audio import audio_classification, speech
from foveal.data.audio.audio_classification import AudioClassificationProcessor
from foveal.data.audio.speech import SpeechProcessor
from foveal.data.core.examples import Examples
from foveal.data.core.prepared_data import PreparedData
from foveal.data.core.split_data import SplitData
from foveal.data.text.special_tokens import SpecialTokens
from foveal.encoders.audio import ConvSubsamplingEncoder, PyramidalLSTMEncoder
from foveal.models.decoder import decoder
from foveal.models.encoder import EncoderWithHead, audio_encoder
from foveal.tasks.base import TaskSummary
from foveal.tasks.examples import default_vocab_size
from foveal.tasks.labeling import ClassificationTask, summarize_labels
from foveal.tasks.text_target import SequenceToSequenceTask


class SpeechRecognitionTask(SequenceToSequenceTask):
    def __init__(self) -> None:
        super().__init__(speech)

    def model(self, config: Config, processor: SpeechProcessor) -> EncoderWithHead:
        return self._model_for_vocab(config, processor.target.size)

    def model_of_default_size(self, config: Config) -> EncoderWithHead:
        return self._model_for_vocab(config, default_vocab_size(config))

    def _model_for_vocab(self, config: Config, target: int) -> EncoderWithHead:
        encoder = audio_encoder(config.model.encoder, config.data.mel_bins)
        vocabulary = SpecialTokens(target).vocab_size
        return EncoderWithHead(
            encoder, decoder(config.model, vocabulary, config.data.max_length, encoder.width)
        )

    def summarize(
        self, config: Config, data: PreparedData[SpeechProcessor, SplitData[Examples]]
    ) -> TaskSummary:
        audio, target = data.processor.audio.settings, data.processor.target
        told = (
            f"speech-recognition: {audio.mel_bins} mel bands of {audio.sample_rate:,} samples a second "
            f"to {target.size:,} {target.kind} tokens"
        )
        return TaskSummary("recordings", told, SpecialTokens(target.size).vocab_size, "target tokens")


class AudioClassificationTask(ClassificationTask):
    def __init__(self) -> None:
        super().__init__(audio_classification)

    def encoder(
        self, config: Config, processor: AudioClassificationProcessor | None = None
    ) -> PyramidalLSTMEncoder | ConvSubsamplingEncoder:
        bins = config.data.mel_bins if processor is None else processor.audio.settings.mel_bins
        return audio_encoder(config.model.encoder, bins)

    def summarize(
        self, config: Config, data: PreparedData[AudioClassificationProcessor, SplitData[Examples]]
    ) -> TaskSummary:
        audio, labels = data.processor.audio.settings, data.processor.labels
        told = (
            f"audio-classification: {summarize_labels(labels)} from {audio.mel_bins} mel bands of "
            f"{audio.sample_rate:,} samples a second"
        )
        return TaskSummary("labelled recordings", told, len(labels), "frames")

    def describe_size(self, facts: dict[str, Any]) -> str:
        return f"{facts['examples']:,} of {facts['frames']:,} frames"
