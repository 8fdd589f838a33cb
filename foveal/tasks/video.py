"""Clips: one label for each, a label for each of its frames, or a text that tells what happens."""

from abc import ABC
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from foveal.config import Config
from foveal.data.core.batching import ExampleBatch
from foveal.data.core.length_buckets import Buckets, HeldOutExamples, gather
from foveal.data.core.prepared_data import Prepared
from foveal.data.core.split_data import Part
from foveal.data.images.captioning import CaptionInputs
from foveal.data.images.image_examples import ImageInputs
from foveal.data.text.special_tokens import Marks
from foveal.data.video.clip_batches import ClipOrder, shown
from foveal.data.video.clip_examples import LabelOfClip, LabelOfFrame, Shots, TextOfClip
from foveal.encoders.video import FrameEncoder, VolumeEncoder
from foveal.models.decoder import decoder
from foveal.models.encoder import Encoded
from foveal.models.video import frame_encoder
from foveal.tasks.base import Described
from foveal.tasks.caption_scores import TellingKind
from foveal.tasks.examples import ExampleKind
from foveal.tasks.labeling import ChoosingKind, PlacesKind, WholeKind, some


def reader_of(config: Config) -> FrameEncoder | VolumeEncoder:
    return frame_encoder(config.model.encoder, config.data.image, config.data.longest)


class FilmedKind(ExampleKind, ABC):
    """What is read: clips."""

    def training_order(self, config: Config, data: Part[Shots]) -> ClipOrder:
        order = Buckets(data.examples, config.data.batch_tokens, config.training.seed)
        return ClipOrder(order, data.examples)

    def once(self, config: Config, examples: Shots) -> ClipOrder:
        return ClipOrder(HeldOutExamples(examples, config.data.batch_tokens), examples)

    def amount(self, facts: dict[str, Any]) -> str:
        return f"{facts['examples']:,} of {facts['frames']:,} frames"


class LabelledKind(FilmedKind, ChoosingKind, ABC):
    told: ClassVar[str]
    """The task, with a place for its labels."""

    def encoder(self, config: Config, inputs: ImageInputs | None = None) -> FrameEncoder | VolumeEncoder:
        return reader_of(config)

    def describe(self, config: Config, data: Prepared[ImageInputs, Part[Shots]]) -> Described:
        labels, size = data.inputs.labels, config.data.image.size
        told = f"{self.told.format(some(labels))} from {size} x {size} pixels"
        return Described("labelled clips", told, len(labels), "frames")


class ClipsKind(LabelledKind, WholeKind):
    told = "clips: {}"
    usual = 10

    def __init__(self) -> None:
        super().__init__(LabelOfClip())


class FramesKind(LabelledKind, PlacesKind):
    told = "frames: {} for each frame,"
    usual = 80

    def __init__(self) -> None:
        super().__init__(LabelOfFrame())


class NarrateKind(FilmedKind, TellingKind):
    def __init__(self) -> None:
        super().__init__(TextOfClip())

    def of_target(self, config: Config, target: int) -> Encoded:
        encoder, vocabulary = reader_of(config), Marks(target).vocabulary
        return Encoded(encoder, decoder(config.model, vocabulary, config.data.longest, encoder.width))

    def gathered(self, examples: Shots, rows: NDArray[np.int64]) -> ExampleBatch:
        return shown(gather(examples, rows), examples)

    def describe(self, config: Config, data: Prepared[CaptionInputs, Part[Shots]]) -> Described:
        size, target = config.data.image.size, data.inputs.target
        told = f"narrate: frames of {size} x {size} pixels to {target.size:,} {target.kind} tokens"
        return Described("clips with a text", told, Marks(target.size).vocabulary, "target tokens")
