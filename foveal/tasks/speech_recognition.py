"""The transcript of a recording."""

from collections.abc import Mapping, Sequence
from shlex import quote
from typing import Any

from foveal.data.core.split_data import SplitData
from foveal.data.open import OpenedData
from foveal.generation.beam_search import Hypothesis
from foveal.generation.options import AttentionMapOptions
from foveal.metrics.recognition import cer, exact_match, wer
from foveal.metrics.score import MetricResult
from foveal.objectives.sequence_to_sequence import SequenceToSequenceObjective
from foveal.tasks.baseline import SimpleAnswers
from foveal.tasks.fit import NO_FIT, Fit, fit_texts_beside
from foveal.tasks.shapes.attention import speech_attention, word_attention_file
from foveal.tasks.shapes.audio import AudioTask
from foveal.tasks.shapes.few_texts import FewTexts
from foveal.tasks.shapes.text_target import SequenceToSequenceTask


class SpeechRecognitionTask(AudioTask, SequenceToSequenceTask):
    name = "speech-recognition"
    purpose = "Write down what is said in a recording."
    preset = "speech-recognition"
    columns = ("text",)
    metrics = (exact_match, wer, cer)
    reads_files = "recordings"
    examples_in_words = "recordings"
    few_texts = FewTexts(
        5000,
        "recordings",
        "With 100 hours (28,000 recordings) such a model still gets every seventh word of read books wrong "
        "(LibriSpeech, Lüscher et al. 2019), and there are no published weights to start from",
        "many hours more of recordings, or texts of few words, such as digits or commands",
    )

    @classmethod
    def recognizes(cls, data: OpenedData, named: Mapping[str, object]) -> Fit:
        """Return 2 for recordings with a text or without a label, and for other files with a table. 1 if the
        recordings may have labels."""
        text, label = str(named.get("text", "text")), str(named.get("label", "label"))
        if data.kind == "audio" and (fit := fit_texts_beside(data)).score:
            return fit
        if data.kind == "files":
            return Fit(2, data.evidence.reason)
        unlabeled = data.is_damaged or (data.has_table and label not in data.columns)
        if data.kind != "audio" or not (text in data.columns or unlabeled):
            return NO_FIT
        column = f"a column {text}" if text in data.columns else f"no column {label}"
        return Fit(2, f"{data.evidence.reason}, with {column}")

    def simple_answers(self, train: SplitData[Any], held_out: SplitData[Any]) -> SimpleAnswers:
        return {"writing nothing": [""] * len(held_out), **super().simple_answers(train, held_out)}

    def baseline_score(self, references: list[str], outputs: list[str]) -> MetricResult:
        return wer(references, outputs)  # few transcripts are right in every character

    def classifying_options(self, data: OpenedData) -> str:
        label = quote(f"data.label={self.target.column(self.config.data)}")
        return f"--task audio-classification {label}"

    def describe_size(self, facts: dict[str, Any]) -> str:
        return f"{facts['examples']:,}"

    def attention_map(
        self,
        objective: SequenceToSequenceObjective,
        examples: Any,
        hypotheses: Sequence[Hypothesis],
        options: AttentionMapOptions,
    ) -> bytes:
        return word_attention_file(self, objective, examples, hypotheses, options, speech_attention)
