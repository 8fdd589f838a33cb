"""A text that describes an image."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from foveal.core.errors import UserError
from foveal.core.progress import ProgressCallback
from foveal.data.images.image_examples import ImageExamples
from foveal.data.open import OpenedData
from foveal.encoders.image import ImageEncoder
from foveal.encoders.patches import PatchEncoder
from foveal.generation.beam_search import Hypothesis
from foveal.generation.options import AttentionMapOptions
from foveal.models.image_networks import output_grid
from foveal.objectives.sequence_to_sequence import SequenceToSequenceObjective
from foveal.tasks.fit import NO_FIT, Fit
from foveal.tasks.results import Answer
from foveal.tasks.shapes.attention import image_attention_file
from foveal.tasks.shapes.captions import CaptioningTask
from foveal.tasks.shapes.few_texts import FewTexts
from foveal.tasks.shapes.images import IMAGE_ENCODERS, ImageTask, check_single_view, image_encoder_for


class ImageCaptioningTask(ImageTask, CaptioningTask):
    name = "captioning"
    purpose = "Describe an image by a text."
    preset = "captioning"
    encoders = IMAGE_ENCODERS
    datasets = ("printed-words",)
    reads_files = "images"
    examples_in_words = "captioned images"
    few_texts = FewTexts(
        1000,
        "captioned images",
        "On 300 drawings neither this preset nor published features wrote better than one text for all; on "
        "3,000 this preset gets nine of ten names of known things right (Noto emoji)",
        "some thousand images; for photos also weights that know photos: foveal train {data} --from lite0 "
        "--task captioning data.image.size=128 training.freeze=encoder",
    )

    @classmethod
    def recognizes(cls, data: OpenedData, named: Mapping[str, object]) -> Fit:
        """Return 2 for images with a text and no label."""
        text, label = str(named.get("text", "text")), str(named.get("label", "label"))
        if data.kind != "images" or text not in data.columns or label in data.columns:
            return NO_FIT
        return Fit(2, f"{data.evidence.reason}, with a column {text} and no {label}")

    def check(self) -> None:
        super().check()
        check_single_view(self.config, "caption")

    def classifying_options(self, data: OpenedData) -> str:
        return f"--task image-classification data.label={self.target.column(self.config.data)}"

    def encoder(self) -> ImageEncoder | PatchEncoder:
        encoder = image_encoder_for(self.config)
        output_grid(
            self.config.model.encoder.network, encoder, self.config.data.image.size
        )  # or it is refused
        return encoder

    def answers(self, examples: ImageExamples, top: int, progress: ProgressCallback) -> list[Answer]:
        """Return a text for each row. An image with several rows is captioned only once."""
        image_indices = np.asarray(examples.columns["picture"])
        _, first, positions = np.unique(image_indices, return_index=True, return_inverse=True)
        answers = super().answers(examples.subset(first.tolist()), top, progress)
        return [answers[position] for position in positions.tolist()]

    def check_attention(self, run: str, file: Path) -> None:
        if file.suffix != ".png":
            raise UserError(f"{file}: attention to an image is drawn as .png; name a .png")

    def attention_map(
        self,
        objective: SequenceToSequenceObjective,
        examples: Any,
        hypotheses: Sequence[Hypothesis],
        options: AttentionMapOptions,
    ) -> bytes:
        return image_attention_file(self, objective, examples, hypotheses, options.head)
