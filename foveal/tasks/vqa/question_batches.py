"""Batches of images. Each image occurs once, with all its questions."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from foveal.data.core.batching import ExampleBatch
from foveal.data.core.examples import RaggedArray
from foveal.data.core.length_buckets import collate_columns
from foveal.data.images.image_batches import (
    ImageEvalBatches,
    ImageTrainBatches,
    center_crops,
    standardize_images,
)
from foveal.tasks.vqa.vqa_examples import VQAExamples

Indices = NDArray[np.int64]


class VQABatches:
    """The batches of `images`, with all questions about the images of a batch."""

    def __init__(self, examples: VQAExamples, images: ImageTrainBatches | ImageEvalBatches):
        self._examples, self._images = examples, images
        image_indices = np.asarray(examples.columns["image"])
        counts = np.bincount(image_indices, minlength=len(examples.images))
        self._questions = RaggedArray(image_indices.argsort(kind="stable"), np.append(0, counts.cumsum()))
        self.per_epoch = images.per_epoch

    def batch(self, epoch: int, index: int) -> ExampleBatch:
        images = self._images.batch(epoch, index)
        image_indices = images.rows.numpy()
        rows = np.concatenate([self._questions[index] for index in image_indices.tolist()])
        return collate_questions(self._examples, rows, image_indices, images.columns["source"])


def collate_center_crops(examples: VQAExamples, rows: Indices) -> ExampleBatch:
    """Return the questions `rows` (B,) with the center crops of their images, for evaluation."""
    image_indices = np.unique(np.asarray(examples.columns["image"])[rows])
    images = standardize_images(center_crops(examples.images, image_indices), examples.images)
    return collate_questions(examples, rows, image_indices, images)


def collate_questions(
    examples: VQAExamples, rows: Indices, image_indices: Indices, images: Tensor
) -> ExampleBatch:
    """Return the questions `rows` (B,) about `images`, which have the indices `image_indices` (I,).

    Columns: `source` (I, C, H, W), the images; `source_of` (B,), the index of each question's image in
    `source`; and the columns of the examples. `choice` (U, T) has the tokens of the choices in `choices` (B,
    K).
    """
    columns, lengths = collate_columns(examples.columns, rows)
    order = image_indices.argsort()
    positions = order[np.searchsorted(image_indices, columns.pop("image").numpy(), sorter=order)]
    columns |= {"source": images, "source_of": torch.from_numpy(positions)}
    if examples.choice_table is not None:
        used, columns["choices"] = torch.unique(columns["choices"], return_inverse=True)
        tokens, counts = examples.choice_table.tokens.padded(used.numpy())
        columns["choice"], lengths["choice"] = torch.from_numpy(tokens), torch.from_numpy(counts)
    indices = torch.from_numpy(rows)
    return ExampleBatch(indices, columns, lengths, lengths.get("target", torch.ones_like(indices)))
