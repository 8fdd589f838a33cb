"""Batches of clips, ordered like other examples, with their standardized frames."""

from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from foveal.data.core.batching import ExampleBatch
from foveal.data.core.length_buckets import BucketedEvalBatches, BucketedTrainBatches
from foveal.data.video.clip_examples import ClipExamples
from foveal.ops.padding import sequence_mask


class ClipBatches:
    """The batches of `batches` with frames. Column `source` is (B, T, C, H, W) with zeros on the right."""

    def __init__(self, batches: BucketedTrainBatches | BucketedEvalBatches, clips: ClipExamples):
        self._batches, self._clips, self.per_epoch = batches, clips, batches.per_epoch

    def batch(self, epoch: int, index: int) -> ExampleBatch:
        return load_clip_frames(self._batches.batch(epoch, index), self._clips)


def load_clip_frames(batch: ExampleBatch, clips: ClipExamples) -> ExampleBatch:
    """Replace the indices of frames in a batch by the frames."""
    source = _frames(batch.columns["source"], batch.lengths["source"], clips)
    return replace(batch, columns={**batch.columns, "source": source})


def _frames(
    indices: Int[Tensor, "B T"], lengths: Int[Tensor, " B"], clips: ClipExamples
) -> Float[Tensor, "B T C H W"]:
    """Return the frames, standardized by the channels' statistics."""
    mean, std = (torch.tensor(values) for values in (clips.statistics.mean, clips.statistics.std))
    mask = sequence_mask(lengths, indices.shape[1])
    levels = torch.from_numpy(clips.frames[indices[mask].numpy()]).float()
    frames = torch.zeros(*indices.shape, *levels.shape[1:])
    frames[mask] = (levels - mean) / std
    return frames.permute(0, 1, 4, 2, 3).contiguous()
