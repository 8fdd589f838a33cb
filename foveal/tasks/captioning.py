"""From an image to a text that tells what is on it."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from foveal.config import Config
from foveal.core.progress import ProgressCallback
from foveal.data.core.batching import ExampleBatch
from foveal.data.core.prepared_data import PreparedData
from foveal.data.core.split_data import SplitData
from foveal.data.images.captioning import CaptioningFormat, CaptioningProcessor
from foveal.data.images.image_batches import center_crops, collate_images, standardize_images
from foveal.data.images.image_examples import ImageExamples
from foveal.data.text.special_tokens import SpecialTokens
from foveal.models.decoder import decoder
from foveal.models.encoder import EncoderWithHead
from foveal.models.image_networks import output_grid
from foveal.tasks.base import TaskSummary
from foveal.tasks.caption_scores import CaptioningTask
from foveal.tasks.image_source import ImageTask, image_encoder_for


class ImageCaptioningTask(ImageTask, CaptioningTask):
    def __init__(self) -> None:
        super().__init__(CaptioningFormat())

    def model_for_vocab(self, config: Config, target: int) -> EncoderWithHead:
        encoder, longest = image_encoder_for(config), config.data.max_length
        output_grid(config.model.encoder.network, encoder, config.data.image.size)  # or it is refused
        return EncoderWithHead(
            encoder, decoder(config.model, SpecialTokens(target).vocab_size, longest, encoder.width)
        )

    def predicted_texts(
        self, config: Config, model: Any, processor: Any, examples: Any, progress: ProgressCallback
    ) -> list[str]:
        """A picture of several rows is told once."""
        _, first, which = np.unique(examples.columns["picture"], return_index=True, return_inverse=True)
        outputs = super().predicted_texts(config, model, processor, examples.subset(first.tolist()), progress)
        return [outputs[number] for number in which.tolist()]

    def eval_batch(self, examples: Any, rows: NDArray[np.int64]) -> ExampleBatch:
        return collate_images(examples, rows, standardize_images(center_crops(examples, rows), examples))

    def summarize(
        self, config: Config, data: PreparedData[CaptioningProcessor, SplitData[ImageExamples]]
    ) -> TaskSummary:
        size, target = config.data.image.size, data.processor.target
        told = f"captioning: {size} x {size} pixels to {target.size:,} {target.kind} tokens"
        return TaskSummary("captioned images", told, SpecialTokens(target.size).vocab_size, "target tokens")
