"""Tasks that describe what an image, a clip or a series shows."""

from abc import ABC
from dataclasses import replace
from typing import Any

from foveal.core.progress import ProgressCallback
from foveal.metrics.cider import caption_words, cider
from foveal.metrics.recognition import exact_match
from foveal.metrics.score import MetricResult
from foveal.metrics.translation import bleu, chrf
from foveal.tasks.base import EvaluationResult, PredictedIds
from foveal.tasks.shapes.text_target import SequenceToSequenceTask


class CaptioningTask(SequenceToSequenceTask, ABC):
    """Several rows may have the same content, each with a text of its own."""

    metrics = (chrf, bleu, exact_match)  # BLEU says little of a caption of few words
    columns = ("text",)
    next_command = ("generate", "--input", "DATA")

    def score(self, data: Any, predicted_ids: PredictedIds, progress: ProgressCallback) -> EvaluationResult:
        """Return the metrics by row, and CIDEr-D with all texts of the same content as references."""
        result = super().score(data, predicted_ids, progress)
        by_content = cider_by_content(data.content_hashes, data.references, result.outputs)
        return replace(result, scores=[*result.scores, by_content])


def cider_by_content(content_hashes: list[str], texts: list[str], outputs: list[str]) -> MetricResult:
    """Return CIDEr-D of the output for each content, all of whose texts are its references.

    A row has a content (a sha256), one text of the content, and the output, which is the same in
    all rows of the content.
    """
    references: dict[str, list[list[str]]] = {}
    for content, text in zip(content_hashes, texts, strict=True):
        references.setdefault(content, []).append(caption_words(text))
    written = dict(zip(content_hashes, map(caption_words, outputs), strict=True))
    return cider(list(references.values()), list(written.values()))
