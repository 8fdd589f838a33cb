"""From a recording to its text, or to a label."""

from typing import Any

from foveal.config import Config
from foveal.data.audio import audio_classification, speech
from foveal.data.audio.audio_classification import SoundInputs
from foveal.data.audio.speech import SpeechInputs
from foveal.data.core.examples import Examples
from foveal.data.core.prepared_data import Prepared
from foveal.data.core.split_data import Part
from foveal.data.text.special_tokens import Marks
from foveal.encoders.audio import ConvEncoder, PyramidEncoder
from foveal.models.decoder import decoder
from foveal.models.encoder import Encoded, audio_encoder
from foveal.tasks.base import Described
from foveal.tasks.examples import usual_vocabulary
from foveal.tasks.labeling import WholeKind, some
from foveal.tasks.text_target import WritingKind


class SpeechKind(WritingKind):
    def __init__(self) -> None:
        super().__init__(speech)

    def model(self, config: Config, inputs: SpeechInputs) -> Encoded:
        return self._of_target(config, inputs.target.size)

    def outline(self, config: Config) -> Encoded:
        return self._of_target(config, usual_vocabulary(config))

    def _of_target(self, config: Config, target: int) -> Encoded:
        encoder = audio_encoder(config.model.encoder, config.data.bins)
        vocabulary = Marks(target).vocabulary
        return Encoded(encoder, decoder(config.model, vocabulary, config.data.longest, encoder.width))

    def describe(self, config: Config, data: Prepared[SpeechInputs, Part[Examples]]) -> Described:
        audio, target = data.inputs.audio.settings, data.inputs.target
        told = (
            f"transcribe: {audio.bins} mel bands of {audio.rate:,} samples a second "
            f"to {target.size:,} {target.kind} tokens"
        )
        return Described("recordings", told, Marks(target.size).vocabulary, "target tokens")


class SoundKind(WholeKind):
    def __init__(self) -> None:
        super().__init__(audio_classification)

    def encoder(self, config: Config, inputs: SoundInputs | None = None) -> PyramidEncoder | ConvEncoder:
        bins = config.data.bins if inputs is None else inputs.audio.settings.bins
        return audio_encoder(config.model.encoder, bins)

    def describe(self, config: Config, data: Prepared[SoundInputs, Part[Examples]]) -> Described:
        audio, labels = data.inputs.audio.settings, data.inputs.labels
        told = f"sounds: {some(labels)} from {audio.bins} mel bands of {audio.rate:,} samples a second"
        return Described("labelled recordings", told, len(labels), "frames")

    def amount(self, facts: dict[str, Any]) -> str:
        return f"{facts['examples']:,} of {facts['frames']:,} frames"
