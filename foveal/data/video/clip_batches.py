"""Batches of clips, in the order of any other examples, with their frames as a model sees them."""

from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from foveal.data.core.batching import ExampleBatch
from foveal.data.core.length_buckets import BucketedEvalBatches, BucketedTrainBatches
from foveal.data.video.clip_examples import ClipExamples
from foveal.ops.padding import sequence_mask


class ClipBatches:
    """The batches of `batches`; column `source` is (B, T, C, H, W) with zeros on the right."""

    def __init__(self, batches: BucketedTrainBatches | BucketedEvalBatches, clips: ClipExamples):
        self._batches, self._clips, self.per_epoch = batches, clips, batches.per_epoch

    def batch(self, epoch: int, index: int) -> ExampleBatch:
        return load_clip_frames(self._batches.batch(epoch, index), self._clips)


def load_clip_frames(batch: ExampleBatch, clips: ClipExamples) -> ExampleBatch:
    """With the frames in place of their numbers."""
    source = _frames(batch.columns["source"], batch.lengths["source"], clips)
    return replace(batch, columns={**batch.columns, "source": source})


def _frames(
    numbers: Int[Tensor, "B T"], lengths: Int[Tensor, " B"], clips: ClipExamples
) -> Float[Tensor, "B T C H W"]:
    """Standardised by the statistics of the channels."""
    mean, deviation = (torch.tensor(of) for of in (clips.statistics.mean, clips.statistics.std))
    here = sequence_mask(lengths, numbers.shape[1])
    levels = torch.from_numpy(clips.frames[numbers[here].numpy()]).float()
    found = torch.zeros(*numbers.shape, *levels.shape[1:])
    found[here] = (levels - mean) / deviation
    return found.permute(0, 1, 4, 2, 3).contiguous()
