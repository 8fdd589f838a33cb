"""Clips as examples: the pixels of their frames, standardized when they are seen."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import UInt8
from numpy.typing import NDArray

from foveal.data.core.examples import Column, Examples, RaggedArray
from foveal.data.core.rows import Row
from foveal.data.core.standardize import Statistics
from foveal.data.images.image_examples import ImageInput

FramePixels = UInt8[np.ndarray, "N H W C"]


@dataclass(frozen=True)
class ClipExamples(Examples):
    """Column `source` has the numbers of each clip's frames, which are in `frames`; beside it what belongs to
    the clip."""

    frames: FramePixels
    statistics: Statistics

    @classmethod
    def from_data(
        cls, clips: Sequence[NDArray[np.uint8]], processor: ImageInput, columns: Mapping[str, Column]
    ) -> "ClipExamples":
        """Return the frames of `clips` as examples, with more columns."""
        empty = np.zeros((0, processor.size, processor.size, processor.channels), np.uint8)
        source = {"source": frame_indices(clips)}
        return cls({**source, **columns}, np.concatenate([*clips, empty]), processor.statistics)


def frame_indices(clips: Sequence[NDArray[np.uint8]]) -> RaggedArray:
    """Return the numbers of each clip's frames, where all frames are counted through."""
    lengths = np.array([0, *map(len, clips)])
    return RaggedArray(np.arange(lengths.sum()), lengths.cumsum())


def clip_statistics(rows: list[Row]) -> Statistics:
    """Return the statistics of the channels of all frames."""
    clips: list[NDArray[np.uint8]] = [row.fields["frames"] for row in rows]
    return Statistics.from_data(frames.reshape(-1, frames.shape[3]).astype(np.float32) for frames in clips)
