"""What the kinds have in common that tell what is seen, in an image or a clip."""

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any

from foveal.config import Config
from foveal.core.progress import Watch
from foveal.data.images.captioning import CaptionInputs
from foveal.metrics.cider import cider, words
from foveal.metrics.score import Score
from foveal.models.encoder import Encoded
from foveal.tasks.base import Chosen, Judged
from foveal.tasks.examples import usual_vocabulary
from foveal.tasks.text_target import WritingKind


class TellingKind(WritingKind, ABC):
    """Several rows may be of the same pixels, each with a text of its own."""

    def model(self, config: Config, inputs: CaptionInputs) -> Encoded:
        return self.of_target(config, inputs.target.size)

    def outline(self, config: Config) -> Encoded:
        return self.of_target(config, usual_vocabulary(config))

    @abstractmethod
    def of_target(self, config: Config, target: int) -> Encoded:
        """The model that writes so many tokens."""

    def judge(
        self, config: Config, model: Encoded, inputs: Any, data: Any, chosen: Chosen, watch: Watch
    ) -> Judged:
        """By row as other texts, and by what is seen with all of its texts as references."""
        judged = super().judge(config, model, inputs, data, chosen, watch)
        several = by_content(data.contents, data.answers, judged.outputs)
        return replace(judged, scores=[*judged.scores, several])


def by_content(contents: list[str], texts: list[str], outputs: list[str]) -> Score:
    """CIDEr-D of what was written for each content, all of whose texts are its references.

    A row has a content (the sha256 of pixels), one text of it, and the output, which is the same in all of
    its rows.
    """
    references: dict[str, list[list[str]]] = {}
    for content, text in zip(contents, texts, strict=True):
        references.setdefault(content, []).append(words(text))
    written = dict(zip(contents, map(words, outputs), strict=True))
    return cider(list(references.values()), list(written.values()))
