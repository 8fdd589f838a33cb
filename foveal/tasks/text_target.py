"""What the kinds that write a target have in common, whatever they read."""

from abc import ABC
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foveal.config import Config, TaskName
from foveal.core.progress import ProgressCallback, iterate_batches
from foveal.data.audio.speech import SpeechProcessor
from foveal.data.core.batching import ExampleBatch
from foveal.data.core.examples import Examples
from foveal.data.core.length_buckets import collate_examples
from foveal.data.core.split_data import SplitData
from foveal.data.images.captioning import CaptioningProcessor
from foveal.data.text.special_tokens import SpecialTokens
from foveal.data.text.text_pairs import TextPairProcessor
from foveal.metrics.recognition import cer, exact_match, wer
from foveal.metrics.score import MetricResult
from foveal.metrics.translation import bleu, chrf
from foveal.models.encoder import EncoderWithHead
from foveal.models.mixer_settings import samples_positions
from foveal.objectives.hard_attention import HardAttentionObjective
from foveal.objectives.preview import PreviewExamples
from foveal.objectives.sequence_to_sequence import SequenceToSequenceObjective
from foveal.tasks.base import EvaluationResult, PredictedIds
from foveal.tasks.examples import ExampleTask
from foveal.tasks.vqa.answer_formats import VQAGenerationProcessor

NUM_PREVIEWS = 3
EVAL_BEAM, EVAL_LENGTH_PENALTY = 5, 1.0
"""How targets are written to be scored."""
TextTargetProcessor = TextPairProcessor | SpeechProcessor | CaptioningProcessor | VQAGenerationProcessor
Metric = Callable[[list[str], list[str]], MetricResult]
"""References and outputs to a score."""
METRICS: dict[TaskName, tuple[Metric, ...]] = {
    "translation": (bleu, chrf),
    "captioning": (chrf, bleu, exact_match),
    "video-captioning": (chrf, bleu, exact_match),
    "vqa-generate": (exact_match, chrf),
    "transduction": (exact_match, wer, cer),
    "speech-recognition": (exact_match, wer, cer),
}
"""By the first of them the worst examples are found: BLEU says little of a caption of few words."""


class SequenceToSequenceTask(ExampleTask, ABC):
    """An encoder, and a generator that reads its memory."""

    def objective(
        self,
        config: Config,
        model: EncoderWithHead,
        processor: TextTargetProcessor,
        preview_examples: SplitData[Any] | None = None,
    ) -> SequenceToSequenceObjective:
        previews = None
        if preview_examples is not None:
            rows = np.arange(min(NUM_PREVIEWS, len(preview_examples)))
            batch = self.eval_batch(preview_examples.examples, rows)
            previews = PreviewExamples(
                batch,
                [self.preview_title(preview_examples.sources[row]) for row in rows],
                processor.target.decode,
            )
        marks = SpecialTokens(processor.target.size)
        make = HardAttentionObjective if samples_positions(config.model) else SequenceToSequenceObjective
        return make(model, marks, processor.length_limit, config.task.label_smoothing, previews)

    def preview_title(self, source: str) -> str:
        """What a preview calls it: a file without its folder, which is another one where a run is resumed."""
        name, colon, question = source.partition(": ")
        return f"{Path(name).name}{colon}{question}"

    def score(
        self,
        config: Config,
        model: EncoderWithHead,
        processor: TextTargetProcessor,
        data: SplitData[Any],
        predicted_ids: PredictedIds,
        progress: ProgressCallback,
    ) -> EvaluationResult:
        """What a beam of 5 writes, by the metrics of the task."""
        outputs, targets = (
            self.predicted_texts(config, model, processor, data.examples, progress),
            data.references,
        )
        if processor.target.kind == "word":  # spaces between words are all alike to it
            targets = [" ".join(text.split()) for text in targets]
        scores = [metric(targets, outputs) for metric in METRICS[config.task.name]]
        return EvaluationResult(data.sources, targets, outputs, data.lengths, scores)

    def predicted_texts(
        self,
        config: Config,
        model: EncoderWithHead,
        processor: TextTargetProcessor,
        examples: Examples,
        progress: ProgressCallback,
    ) -> list[str]:
        work = self.objective(config, model, processor)
        # Hypotheses grow by one token at a time: even a beam of them needs less memory than training.
        order = self.example_batches(config, examples)
        outputs = [""] * len(examples)
        for batch in iterate_batches(order, progress):
            written = work.beam_decode(batch, EVAL_BEAM, alpha=EVAL_LENGTH_PENALTY)
            for row, hypotheses in zip(batch.rows.tolist(), written, strict=True):
                outputs[row] = processor.target.decode(work.strip_special_tokens(hypotheses[0])).strip()
        return outputs

    def eval_batch(self, examples: Any, rows: NDArray[np.int64]) -> ExampleBatch:
        """The examples `rows` (B,) as they are seen when they are not trained on."""
        return collate_examples(examples, rows)
