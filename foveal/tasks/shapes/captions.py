"""Tasks that caption an image, a clip or a series."""

from abc import ABC
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from foveal.core.progress import ProgressCallback
from foveal.metrics.captions import caption_words, cider
from foveal.metrics.recognition import exact_match
from foveal.metrics.score import MetricResult
from foveal.metrics.translation import bleu_if_meaningful, chrf
from foveal.tasks.results import EvaluationResult, LabelsByRow
from foveal.tasks.shapes.text_target import SequenceToSequenceTask


class CaptioningTask(SequenceToSequenceTask, ABC):
    """Base class of tasks with captions. Several rows can have the same content with different texts."""

    metrics = (chrf, bleu_if_meaningful, exact_match)  # BLEU is not meaningful for captions of few words
    columns = ("text",)
    next_command = ("generate", "--input", "DATA")

    def score(self, data: Any, predicted: LabelsByRow, progress: ProgressCallback) -> EvaluationResult:
        """Return the metrics by row, and CIDEr-D with all texts of the same content as references."""
        result = super().score(data, predicted, progress)
        by_content = cider_by_content(data.content_hashes, data.references, result.outputs)
        return replace(result, scores=[*result.scores, by_content])


def cider_by_content(content_hashes: Sequence[str], texts: Sequence[str], outputs: list[str]) -> MetricResult:
    """Return CIDEr-D of the output for each content, with all texts of the content as references.

    Each row has the sha256 of its content, a text, and an output. All rows of a content have the same output.
    """
    references: dict[str, list[list[str]]] = {}
    for content, text in zip(content_hashes, texts, strict=True):
        references.setdefault(content, []).append(caption_words(text))
    output_words = dict(zip(content_hashes, map(caption_words, outputs), strict=True))
    return cider(list(references.values()), list(output_words.values()))
