"""What the kinds have in common that tell what is seen, in an image or a clip."""

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any

from foveal.config import Config
from foveal.core.progress import ProgressCallback
from foveal.data.images.captioning import CaptioningProcessor
from foveal.metrics.cider import caption_words, cider
from foveal.metrics.score import MetricResult
from foveal.models.encoder import EncoderWithHead
from foveal.tasks.base import EvaluationResult, PredictedIds
from foveal.tasks.examples import default_vocab_size
from foveal.tasks.text_target import SequenceToSequenceTask


class CaptioningTask(SequenceToSequenceTask, ABC):
    """Several rows may be of the same pixels, each with a text of its own."""

    def model(self, config: Config, processor: CaptioningProcessor) -> EncoderWithHead:
        return self.model_for_vocab(config, processor.target.size)

    def model_of_default_size(self, config: Config) -> EncoderWithHead:
        return self.model_for_vocab(config, default_vocab_size(config))

    @abstractmethod
    def model_for_vocab(self, config: Config, target: int) -> EncoderWithHead:
        """The model that writes so many tokens."""

    def score(
        self,
        config: Config,
        model: EncoderWithHead,
        processor: Any,
        data: Any,
        predicted_ids: PredictedIds,
        progress: ProgressCallback,
    ) -> EvaluationResult:
        """By row as other texts, and by what is seen with all of its texts as references."""
        judged = super().score(config, model, processor, data, predicted_ids, progress)
        several = cider_by_content(data.content_hashes, data.references, judged.outputs)
        return replace(judged, scores=[*judged.scores, several])


def cider_by_content(content_hashes: list[str], texts: list[str], outputs: list[str]) -> MetricResult:
    """CIDEr-D of what was written for each content, all of whose texts are its references.

    A row has a content (the sha256 of pixels), one text of it, and the output, which is the same in all of
    its rows.
    """
    references: dict[str, list[list[str]]] = {}
    for content, text in zip(content_hashes, texts, strict=True):
        references.setdefault(content, []).append(caption_words(text))
    written = dict(zip(content_hashes, map(caption_words, outputs), strict=True))
    return cider(list(references.values()), list(written.values()))
