"""Batches of recordings for encoders that turn several frames into one vector."""

from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

from foveal.data.core.batching import ExampleBatch


@runtime_checkable
class ExampleBatches(Protocol):
    """Batches of examples, a pure function of (epoch, index)."""

    @property
    def per_epoch(self) -> int: ...

    def batch(self, epoch: int, index: int) -> Any: ...


class FramePlaceBatches:
    """The batches of `batches`, with places: for each frame, the index of its vector in the encoder's output.

    Vector i is computed from `frames_per_vector` frames, so these frames share a place.
    """

    def __init__(self, batches: ExampleBatches, frames_per_vector: int):
        self._batches, self._frames_per_vector = batches, frames_per_vector
        self.per_epoch = batches.per_epoch

    def batch(self, epoch: int, index: int) -> ExampleBatch:
        return share_places(self._batches.batch(epoch, index), self._frames_per_vector)


def share_places(batch: ExampleBatch, frames_per_vector: int) -> ExampleBatch:
    """Return a batch with the index of each frame's vector as its place."""
    places = batch.columns["places"] // frames_per_vector
    return replace(batch, columns={**batch.columns, "places": places})
