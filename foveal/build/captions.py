"""From an image to a text that tells what is on it."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from foveal.build.kind import Described
from foveal.build.pictured import PicturedKind, picture_encoder
from foveal.build.telling import TellingKind
from foveal.config import Config
from foveal.data.batching import ExampleBatch
from foveal.data.captions import CaptionForm, CaptionInputs
from foveal.data.images import Pictures
from foveal.data.marks import Marks
from foveal.data.part import Part
from foveal.data.picture_order import centres, gather, standardised
from foveal.data.prepared import Prepared
from foveal.models.convnets import grid_of
from foveal.models.encoder import Encoded
from foveal.models.language import decoder
from foveal.training.watch import Watch


class CaptionKind(PicturedKind, TellingKind):
    def __init__(self) -> None:
        super().__init__(CaptionForm())

    def of_target(self, config: Config, target: int) -> Encoded:
        encoder, longest = picture_encoder(config), config.data.longest
        grid_of(config.model.encoder.network, encoder, config.data.image.size)  # or it is refused
        return Encoded(encoder, decoder(config.model, Marks(target).vocabulary, longest, encoder.width))

    def found(self, config: Config, model: Any, inputs: Any, examples: Any, watch: Watch) -> list[str]:
        """A picture of several rows is told once."""
        _, first, which = np.unique(examples.columns["picture"], return_index=True, return_inverse=True)
        outputs = super().found(config, model, inputs, examples.some(first.tolist()), watch)
        return [outputs[number] for number in which.tolist()]

    def gathered(self, examples: Any, rows: NDArray[np.int64]) -> ExampleBatch:
        return gather(examples, rows, standardised(centres(examples, rows), examples))

    def describe(self, config: Config, data: Prepared[CaptionInputs, Part[Pictures]]) -> Described:
        size, target = config.data.image.size, data.inputs.target
        told = f"caption: {size} x {size} pixels to {target.size:,} {target.kind} tokens"
        return Described("captioned images", told, Marks(target.size).vocabulary, "target tokens")
