"""A text that describes an image."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np

from foveal.core.errors import UserError
from foveal.core.progress import ProgressCallback
from foveal.data.images.image_examples import ImageExamples
from foveal.data.images.image_facts import image_facts
from foveal.data.images.image_files import captioned_images
from foveal.data.open import OpenedData
from foveal.generation.beam_search import Hypothesis
from foveal.generation.options import AttentionMapOptions
from foveal.inspection.attention.render import PICTURES
from foveal.interop.published.efficientnet import NAME as PRETRAINED
from foveal.models.encoder_registry import ImageSizes
from foveal.models.image_networks import output_grid
from foveal.objectives.sequence_to_sequence import SequenceToSequenceObjective
from foveal.tasks.defaults import MAX_COUNTED_ROWS, Defaults, DefaultsRequest
from foveal.tasks.fit import NO_FIT, Fit, fit_texts_beside
from foveal.tasks.image_defaults import are_photos, images_in_words, may_start_from_weights
from foveal.tasks.results import Answer
from foveal.tasks.shapes.attention import image_attention_file
from foveal.tasks.shapes.captions import CaptioningTask
from foveal.tasks.shapes.few_texts import FewTexts
from foveal.tasks.shapes.images import (
    IMAGE_ENCODERS,
    ImageTask,
    check_single_view,
    image_encoder_for,
    image_sizes,
)

MAX_FEW_PHOTOS = 2000
"""Photos at most that are captioned by default with published weights (measured: docs/small-data.md)."""
FROZEN = ("training.freeze=encoder", "data.image.size=128")
"""The settings of a training from published weights: only the decoder learns, from 4 x 4 positions."""


class ImageCaptioningTask(ImageTask, CaptioningTask):
    name = "captioning"
    purpose = "Describe an image by a text."
    preset = "captioning"
    encoders = IMAGE_ENCODERS
    encoder_source = "image"
    datasets = ("printed-words",)
    reads_files = "images"
    examples_in_words = "captioned images"
    few_texts = FewTexts(
        1000,
        "captioned images",
        "On 300 drawings neither this preset nor published features wrote better than one text for all; on "
        "3,000 this preset gets nine of ten names of known things right (Noto emoji)",
        "some thousand images, or texts of few words",
    )

    @classmethod
    def recognizes(cls, data: OpenedData, named: Mapping[str, object]) -> Fit:
        """Return 2 for images with a text and no label. 1 if they may have labels."""
        text, label = str(named.get("text", "text")), str(named.get("label", "label"))
        if data.kind == "images" and (fit := fit_texts_beside(data)).score:
            return fit
        if data.kind != "images" or text not in data.columns or label in data.columns:
            return NO_FIT
        return Fit(2, f"{data.evidence.reason}, with a column {text} and no {label}")

    def defaults(self, request: DefaultsRequest) -> Defaults:
        """Return the preset; for few photos, with published weights of an encoder, which are not trained."""
        defaults, data = super().defaults(request), self.config.data
        if not may_start_from_weights(request, data.image.channels):
            return defaults
        with suppress(UserError):
            column = self.target.column(data)
            facts = image_facts(request.data.train, column, MAX_COUNTED_ROWS, captioned_images)
            if are_photos(facts) and facts.rows <= MAX_FEW_PHOTOS:
                reason = f"{images_in_words(facts)} are few: features learned from other photos, as they are"
                return Defaults(
                    self.preset, reason, FROZEN, PRETRAINED, "--pretrained no", advice=defaults.advice
                )
        return defaults

    def check(self) -> None:
        super().check()
        check_single_view(self.config, "caption")

    def classifying_options(self, data: OpenedData) -> str:
        label = quote(f"data.label={self.target.column(self.config.data)}")
        return f"--task image-classification {label}"

    @property
    def source_sizes(self) -> ImageSizes:
        return image_sizes(self.config)

    def encoder(self) -> Any:
        encoder = image_encoder_for(self.config)
        if self.config.model.encoder.kind in self.encoders:
            # Images that are too small for the network are refused.
            output_grid(self.config.model.encoder.network, encoder, self.config.data.image.size)
        return encoder

    def answers(self, examples: ImageExamples, top: int, progress: ProgressCallback) -> list[Answer]:
        """Return a text for each row. An image with several rows is captioned only once."""
        image_indices = np.asarray(examples.columns["picture"])
        _, first, positions = np.unique(image_indices, return_index=True, return_inverse=True)
        answers = super().answers(examples.subset(first.tolist()), top, progress)
        return [answers[position] for position in positions.tolist()]

    def check_attention(self, run: str, file: Path) -> None:
        if file.suffix not in PICTURES:
            raise UserError(
                f"{file}: attention to an image is drawn as {', '.join(PICTURES)}; name one of them"
            )

    def attention_map(
        self,
        objective: SequenceToSequenceObjective,
        examples: Any,
        hypotheses: Sequence[Hypothesis],
        options: AttentionMapOptions,
    ) -> bytes:
        return image_attention_file(self, objective, examples, hypotheses, options)
