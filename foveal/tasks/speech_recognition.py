"""From a recording to its text."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from foveal.data.audio import speech
from foveal.data.audio.speech import SpeechProcessor
from foveal.data.core.examples import Examples
from foveal.data.core.prepared_data import PreparedData
from foveal.data.core.split_data import SplitData
from foveal.data.files.format import DataFormat
from foveal.data.open import OpenedData
from foveal.data.text.special_tokens import SpecialTokens
from foveal.encoders.audio import ConvSubsamplingEncoder, PyramidalLSTMEncoder
from foveal.generation.beam_search import Hypothesis
from foveal.generation.options import AttentionMapOptions
from foveal.metrics.recognition import cer, exact_match, wer
from foveal.models.encoder import audio_encoder
from foveal.objectives.sequence_to_sequence import SequenceToSequenceObjective
from foveal.tasks.base import TaskSummary
from foveal.tasks.shapes.attention import speech_attention, word_attention_file
from foveal.tasks.shapes.text_target import SequenceToSequenceTask


class SpeechRecognitionTask(SequenceToSequenceTask):
    name = "speech-recognition"
    purpose = "Write down what is said in a recording."
    preset = "speech-recognition"
    form: ClassVar[DataFormat] = speech
    reads = "audio"
    encoders = ("pyramid", "convolution")
    columns = ("text",)
    metrics = (exact_match, wer, cer)
    length_unit = "frames"
    reads_files = "recordings"

    @classmethod
    def recognizes(cls, data: OpenedData, named: Mapping[str, object]) -> int:
        """Return 2 for recordings whose table has a text, or no label; and for other files with a table."""
        text, label = str(named.get("text", "text")), str(named.get("label", "label"))
        if data.kind == "files":
            return 2
        unlabeled = data.is_damaged or (data.has_table and label not in data.columns)
        return 2 if data.kind == "audio" and (text in data.columns or unlabeled) else 0

    def encoder(self) -> PyramidalLSTMEncoder | ConvSubsamplingEncoder:
        return audio_encoder(self.config.model.encoder, self.config.data.mel_bins)

    def summarize(self, prepared: PreparedData[SpeechProcessor, SplitData[Examples]]) -> TaskSummary:
        audio, target = prepared.processor.audio.settings, prepared.processor.target
        task = (
            f"{self.name}: {audio.mel_bins} mel bands of {audio.sample_rate:,} samples a second "
            f"to {target.size:,} {target.kind} tokens"
        )
        return TaskSummary("recordings", task, SpecialTokens(target.size).vocab_size, "target tokens")

    def attention_map(
        self,
        objective: SequenceToSequenceObjective,
        examples: Any,
        hypotheses: Sequence[Hypothesis],
        options: AttentionMapOptions,
    ) -> bytes:
        return word_attention_file(self, objective, examples, hypotheses, options, speech_attention)
