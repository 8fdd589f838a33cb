"""Batches of images, each once, with all questions about them."""

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
    """Batches of images, each image with all questions about it."""

    def __init__(self, examples: VQAExamples, images: ImageTrainBatches | ImageEvalBatches):
        self._examples, self._images = examples, images
        about = np.asarray(examples.columns["image"])
        counts = np.bincount(about, minlength=len(examples.images))
        self._questions = RaggedArray(about.argsort(kind="stable"), np.append(0, counts.cumsum()))
        self.per_epoch = images.per_epoch

    def batch(self, epoch: int, index: int) -> ExampleBatch:
        images = self._images.batch(epoch, index)
        numbers = images.rows.numpy()
        rows = np.concatenate([self._questions[number] for number in numbers.tolist()])
        return collate_questions(self._examples, rows, numbers, images.columns["source"])


def collate_center_crops(examples: VQAExamples, rows: Indices) -> ExampleBatch:
    """Return a batch of the questions `rows` (B,), with images as in evaluation."""
    numbers = np.unique(np.asarray(examples.columns["image"])[rows])
    pictures = examples.images
    return collate_questions(
        examples, rows, numbers, standardize_images(center_crops(pictures, numbers), pictures)
    )


def collate_questions(examples: VQAExamples, rows: Indices, numbers: Indices, images: Tensor) -> ExampleBatch:
    """Return a batch of the questions `rows` (B,) about `images`, which have the `numbers` (I,).

    Columns: `source` (I, C, H, W), the images; `source_of` (B,), the image of each question; and those of the
    examples. With `choices` (B, K), numbers of choices, comes `choice` (U, T), the tokens of the choices.
    """
    columns, lengths = collate_columns(examples.columns, rows)
    order = numbers.argsort()
    source_of = order[np.searchsorted(numbers, columns.pop("image").numpy(), sorter=order)]
    columns |= {"source": images, "source_of": torch.from_numpy(source_of)}
    if examples.choice_table is not None:
        used, columns["choices"] = torch.unique(columns["choices"], return_inverse=True)
        tokens, counts = examples.choice_table.tokens.padded(used.numpy())
        columns["choice"], lengths["choice"] = torch.from_numpy(tokens), torch.from_numpy(counts)
    scored = int(lengths["target"].sum()) if "target" in lengths else len(rows)
    return ExampleBatch(torch.from_numpy(rows), columns, lengths, scored)
