"""Batches of images, each once, with all questions about them."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from foveal.data.core.batching import ExampleBatch
from foveal.data.core.examples import Ragged
from foveal.data.core.length_buckets import side_by_side
from foveal.data.images.image_batches import HeldOutPictures, PictureOrder, centres, standardised
from foveal.tasks.vqa.vqa_examples import AskExamples

Numbers = NDArray[np.int64]


class AskOrder:
    """The batches of an order of the pictures, each with all questions about its pictures."""

    def __init__(self, examples: AskExamples, pictures: PictureOrder | HeldOutPictures):
        self._examples, self._pictures = examples, pictures
        about = np.asarray(examples.columns["image"])
        counts = np.bincount(about, minlength=len(examples.pictures))
        self._questions = Ragged(about.argsort(kind="stable"), np.append(0, counts.cumsum()))
        self.per_epoch = pictures.per_epoch

    def batch(self, epoch: int, index: int) -> ExampleBatch:
        images = self._pictures.batch(epoch, index)
        numbers = images.rows.numpy()
        rows = np.concatenate([self._questions[number] for number in numbers.tolist()])
        return gather(self._examples, rows, numbers, images.columns["source"])


def shown(examples: AskExamples, rows: Numbers) -> ExampleBatch:
    """The questions `rows` (B,) about images as they are seen when they are not trained on."""
    numbers = np.unique(np.asarray(examples.columns["image"])[rows])
    pictures = examples.pictures
    return gather(examples, rows, numbers, standardised(centres(pictures, numbers), pictures))


def gather(examples: AskExamples, rows: Numbers, numbers: Numbers, images: Tensor) -> ExampleBatch:
    """The questions `rows` (B,) about `images`, which were made of the pictures `numbers` (I,).

    Columns: `source` (I, C, H, W), the images; `source_of` (B,), which of them each question is about; and
    those of the examples. Beside `choices` (B, K), numbers of choices, `choice` (U, T) has their tokens.
    """
    columns, lengths = side_by_side(examples.columns, rows)
    order = numbers.argsort()
    places = order[np.searchsorted(numbers, columns.pop("image").numpy(), sorter=order)]
    columns |= {"source": images, "source_of": torch.from_numpy(places)}
    if examples.known is not None:
        used, columns["choices"] = torch.unique(columns["choices"], return_inverse=True)
        tokens, counts = examples.known.tokens.padded(used.numpy())
        columns["choice"], lengths["choice"] = torch.from_numpy(tokens), torch.from_numpy(counts)
    scored = int(lengths["target"].sum()) if "target" in lengths else len(rows)
    return ExampleBatch(torch.from_numpy(rows), columns, lengths, scored)
