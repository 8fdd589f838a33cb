"""From an image to a text that tells what is on it."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from foveal.config import Config
from foveal.core.progress import Watch
from foveal.data.core.batching import ExampleBatch
from foveal.data.core.prepared_data import Prepared
from foveal.data.core.split_data import Part
from foveal.data.images.captioning import CaptionForm, CaptionInputs
from foveal.data.images.image_batches import centres, gather, standardised
from foveal.data.images.image_examples import Pictures
from foveal.data.text.special_tokens import Marks
from foveal.models.decoder import decoder
from foveal.models.encoder import Encoded
from foveal.models.image_networks import grid_of
from foveal.tasks.base import Described
from foveal.tasks.caption_scores import TellingKind
from foveal.tasks.image_source import PicturedKind, picture_encoder


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
