"""Batches of clips, in the order of any other examples, with their frames as a model sees them."""

from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from foveal.data.core.batching import ExampleBatch
from foveal.data.core.length_buckets import Buckets, HeldOutExamples
from foveal.data.video.clip_examples import Shots
from foveal.ops.padding import present


class ClipOrder:
    """The batches of `order`; column `source` is (B, T, C, H, W) with zeros on the right."""

    def __init__(self, order: Buckets | HeldOutExamples, shots: Shots):
        self._order, self._shots, self.per_epoch = order, shots, order.per_epoch

    def batch(self, epoch: int, index: int) -> ExampleBatch:
        return shown(self._order.batch(epoch, index), self._shots)


def shown(batch: ExampleBatch, shots: Shots) -> ExampleBatch:
    """With the frames in place of their numbers."""
    source = _frames(batch.columns["source"], batch.lengths["source"], shots)
    return replace(batch, columns={**batch.columns, "source": source})


def _frames(
    numbers: Int[Tensor, "B T"], lengths: Int[Tensor, " B"], shots: Shots
) -> Float[Tensor, "B T C H W"]:
    """Standardised by the statistics of the channels."""
    mean, deviation = (torch.tensor(of) for of in (shots.statistics.mean, shots.statistics.deviation))
    here = present(lengths, numbers.shape[1])
    levels = torch.from_numpy(shots.frames[numbers[here].numpy()]).float()
    found = torch.zeros(*numbers.shape, *levels.shape[1:])
    found[here] = (levels - mean) / deviation
    return found.permute(0, 1, 4, 2, 3).contiguous()
