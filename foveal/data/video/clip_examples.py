"""Clips as examples: the 8-bit pixels of their frames, which are standardized in batches."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, UInt8
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from foveal.data.core.examples import Column, Examples, RaggedArray
from foveal.data.core.rows import Row
from foveal.data.core.standardize import Statistics
from foveal.data.images.image_examples import ImageProcessor

FramePixels = UInt8[np.ndarray, "N H W C"]


@dataclass(frozen=True)
class ClipExamples(Examples):
    """Examples with the column `source`, the indices of each clip's frames in `frames`. Other columns belong
    to the target."""

    frames: FramePixels
    statistics: Statistics

    @classmethod
    def from_data(
        cls, clips: Sequence[NDArray[np.uint8]], processor: ImageProcessor, columns: Mapping[str, Column]
    ) -> "ClipExamples":
        """Return the examples of the frames of `clips`, with the given `columns`."""
        empty = np.zeros((0, processor.size, processor.size, processor.channels), np.uint8)
        source = {"source": frame_indices(clips)}
        return cls({**source, **columns}, np.concatenate([*clips, empty]), processor.statistics)


def frame_indices(clips: Sequence[NDArray[np.uint8]]) -> RaggedArray:
    """Return the indices of each clip's frames among the frames of all clips."""
    lengths = np.array([0, *map(len, clips)])
    return RaggedArray(np.arange(lengths.sum()), lengths.cumsum())


def clip_statistics(rows: Sequence[Row]) -> Statistics:
    """Return the channel statistics of all frames."""
    clips: list[NDArray[np.uint8]] = [row.fields["frames"] for row in rows]
    return Statistics.from_data(frames.reshape(-1, frames.shape[3]).astype(np.float32) for frames in clips)


def small_clips(clips: ClipExamples, side: int) -> Float[Tensor, "N D"]:
    """Return the mean and the mean absolute change of each clip's pixels over its frames, at `side` pixels to
    a side at most, from 0 to 1."""
    column = clips.columns["source"]
    assert isinstance(column, RaggedArray)
    return torch.stack([_small_clip(clips.frames[column[row]], side) for row in range(len(column))])


def _small_clip(frames: FramePixels, side: int) -> Float[Tensor, " D"]:
    pixels = torch.from_numpy(frames).permute(0, 3, 1, 2) / 255
    small = F.adaptive_avg_pool2d(pixels, min(side, pixels.shape[2]))
    change = small.diff(dim=0).abs().mean(0) if len(small) > 1 else torch.zeros_like(small[0])
    return torch.cat([small.mean(0).flatten(), change.flatten()])
