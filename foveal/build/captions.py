"""From an image to a text that tells what is on it."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foveal.build.examples import usual_vocabulary
from foveal.build.images import picture_encoder
from foveal.build.kind import Described, Judged
from foveal.build.writing import WritingKind
from foveal.config import Config
from foveal.data.batching import ExampleBatch
from foveal.data.captions import CaptionForm, CaptionInputs, Captions
from foveal.data.images import Pictures
from foveal.data.marks import Marks
from foveal.data.picture_order import HeldOutPictures, PictureOrder, centres, gather, standardised
from foveal.data.prepared import Prepared
from foveal.models.convnets import grid_of
from foveal.models.encoder import Encoded
from foveal.models.language import decoder
from foveal.scores.cider import cider, words
from foveal.scores.score import Score
from foveal.training.watch import Watch


class CaptionKind(WritingKind):
    def __init__(self) -> None:
        super().__init__(CaptionForm())

    def model(self, config: Config, inputs: CaptionInputs) -> Encoded:
        return self._of_target(config, inputs.target.size)

    def outline(self, config: Config) -> Encoded:
        return self._of_target(config, usual_vocabulary(config))

    def _of_target(self, config: Config, target: int) -> Encoded:
        encoder, longest = picture_encoder(config), config.data.longest
        grid_of(config.model.encoder.network, encoder, config.data.image.size)  # or it is refused
        return Encoded(encoder, decoder(config.model, Marks(target).vocabulary, longest, encoder.width))

    def training_order(self, config: Config, data: Captions) -> PictureOrder:
        return PictureOrder(data.examples, config.data.image.batch, config.data.augment, config.training.seed)

    def once(self, config: Config, examples: Pictures) -> HeldOutPictures:
        return HeldOutPictures(examples, config.data.image)

    def gathered(self, examples: Any, rows: NDArray[np.int64]) -> ExampleBatch:
        return gather(examples, rows, standardised(centres(examples, rows), examples))

    def judge(self, config: Config, model: Encoded, inputs: Any, data: Any, watch: Watch) -> Judged:
        """By row as other texts, and by picture with all of its texts as references."""
        judged = super().judge(config, model, inputs, data, watch)
        return replace(
            judged, scores=[*judged.scores, by_picture(data.contents, data.targets, judged.outputs)]
        )

    def describe(self, config: Config, data: Prepared[CaptionInputs, Captions]) -> Described:
        size, target = config.data.image.size, data.inputs.target
        told = f"caption: {size} x {size} pixels to {target.size:,} {target.kind} tokens"
        return Described("captioned images", told, Marks(target.size).vocabulary, "target tokens")


def by_picture(contents: list[str], texts: list[str], outputs: list[str]) -> Score:
    """CIDEr-D of what was written for each picture, all of whose texts are its references.

    A row has a picture's content, one text of it, and the output, which is the same in all of its rows.
    """
    references: dict[str, list[list[str]]] = {}
    for content, text in zip(contents, texts, strict=True):
        references.setdefault(content, []).append(words(text))
    written = dict(zip(contents, map(words, outputs), strict=True))
    return cider(list(references.values()), list(written.values()))
