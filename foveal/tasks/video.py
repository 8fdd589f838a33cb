"""Clips: one label for each, a label for each of its frames, or a text that tells what happens."""

from abc import ABC
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from foveal.config import Config
from foveal.data.core.batching import ExampleBatch
from foveal.data.core.length_buckets import BucketedEvalBatches, BucketedTrainBatches, collate_examples
from foveal.data.core.prepared_data import PreparedData
from foveal.data.core.split_data import SplitData
from foveal.data.images.captioning import CaptioningProcessor
from foveal.data.images.image_examples import ImageClassificationProcessor
from foveal.data.text.special_tokens import SpecialTokens
from foveal.data.video.clip_batches import ClipBatches, load_clip_frames
from foveal.data.video.clip_examples import (
    ClipExamples,
    FrameTaggingFormat,
    VideoCaptioningFormat,
    VideoClassificationFormat,
)
from foveal.encoders.video import Conv3dEncoder, FrameEncoder
from foveal.models.decoder import decoder
from foveal.models.encoder import EncoderWithHead
from foveal.models.video import video_encoder
from foveal.tasks.base import TaskSummary
from foveal.tasks.caption_scores import CaptioningTask
from foveal.tasks.examples import ExampleTask
from foveal.tasks.labeling import ClassificationTask, LabelingTask, TaggingTask, summarize_labels


def clip_encoder_for(config: Config) -> FrameEncoder | Conv3dEncoder:
    return video_encoder(config.model.encoder, config.data.image, config.data.max_length)


class ClipTask(ExampleTask, ABC):
    """What is read: clips."""

    def train_batches(self, config: Config, data: SplitData[ClipExamples]) -> ClipBatches:
        order = BucketedTrainBatches(data.examples, config.data.batch_tokens, config.training.seed)
        return ClipBatches(order, data.examples)

    def example_batches(self, config: Config, examples: ClipExamples) -> ClipBatches:
        return ClipBatches(BucketedEvalBatches(examples, config.data.batch_tokens), examples)

    def describe_size(self, facts: dict[str, Any]) -> str:
        return f"{facts['examples']:,} of {facts['frames']:,} frames"


class ClipLabelingTask(ClipTask, LabelingTask, ABC):
    summary_template: ClassVar[str]
    """The task, with a place for its labels."""

    def encoder(
        self, config: Config, processor: ImageClassificationProcessor | None = None
    ) -> FrameEncoder | Conv3dEncoder:
        return clip_encoder_for(config)

    def summarize(
        self, config: Config, data: PreparedData[ImageClassificationProcessor, SplitData[ClipExamples]]
    ) -> TaskSummary:
        labels, size = data.processor.labels, config.data.image.size
        told = f"{self.summary_template.format(summarize_labels(labels))} from {size} x {size} pixels"
        return TaskSummary("labelled clips", told, len(labels), "frames")


class VideoClassificationTask(ClipLabelingTask, ClassificationTask):
    summary_template = "video-classification: {}"
    default_classes = 10

    def __init__(self) -> None:
        super().__init__(VideoClassificationFormat())


class FrameTaggingTask(ClipLabelingTask, TaggingTask):
    summary_template = "frame-tagging: {} for each frame,"
    default_classes = 80

    def __init__(self) -> None:
        super().__init__(FrameTaggingFormat())


class VideoCaptioningTask(ClipTask, CaptioningTask):
    def __init__(self) -> None:
        super().__init__(VideoCaptioningFormat())

    def model_for_vocab(self, config: Config, target: int) -> EncoderWithHead:
        encoder, vocabulary = clip_encoder_for(config), SpecialTokens(target).vocab_size
        return EncoderWithHead(
            encoder, decoder(config.model, vocabulary, config.data.max_length, encoder.width)
        )

    def eval_batch(self, examples: ClipExamples, rows: NDArray[np.int64]) -> ExampleBatch:
        return load_clip_frames(collate_examples(examples, rows), examples)

    def summarize(
        self, config: Config, data: PreparedData[CaptioningProcessor, SplitData[ClipExamples]]
    ) -> TaskSummary:
        size, target = config.data.image.size, data.processor.target
        told = f"video-captioning: frames of {size} x {size} pixels to {target.size:,} {target.kind} tokens"
        return TaskSummary("clips with a text", told, SpecialTokens(target.size).vocab_size, "target tokens")
