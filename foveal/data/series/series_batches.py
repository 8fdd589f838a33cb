"""Training batches of series: a number of series at random, and their augmentation.

Batches are a pure function of (seed, epoch, index). The augmentation of a series is a function of (seed,
epoch, series), and does not depend on the batch.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from foveal.config import SeriesConfig
from foveal.core.runtime import derived_seed
from foveal.data.core.batching import ExampleBatch
from foveal.data.core.examples import Examples
from foveal.data.core.length_buckets import collate_examples
from foveal.data.core.shuffle import shuffled_batch


class ShuffledTrainBatches:
    """Every example exactly once per epoch, in random order, in batches of equal sizes of at most `rows`."""

    def __init__(self, examples: Examples, rows: int, seed: int):
        self._examples, self._seed = examples, seed
        self.per_epoch = -(-len(examples) // rows)

    def batch(self, epoch: int, index: int) -> ExampleBatch:
        seed = derived_seed(self._seed, "series", epoch)
        return collate_examples(
            self._examples, shuffled_batch(len(self._examples), self.per_epoch, index, seed)
        )


class AugmentedSeriesBatches:
    """Other `batches`, with every series changed in another way in each epoch.

    `z = factor * x + noise` at each step: each channel of a series has one factor, exponential of a normal
    number of deviation `series.scaling`, and each value its own noise, normal of deviation `series.jitter`
    (Um et al. 2017, "jittering" and "scaling"). `x` is standardized.
    """

    def __init__(self, batches: Any, series: SeriesConfig, seed: int):
        self._batches, self._series, self._seed = batches, series, seed
        self.per_epoch: int = batches.per_epoch

    def batch(self, epoch: int, index: int) -> ExampleBatch:
        batch: ExampleBatch = self._batches.batch(epoch, index)
        rows = zip(
            batch.rows.tolist(), batch.columns["source"], batch.lengths["source"].tolist(), strict=True
        )
        changed = [self._changed(values, length, epoch, row) for row, values, length in rows]
        return replace(batch, columns=batch.columns | {"source": torch.stack(changed)})

    def _changed(
        self, values: Float[Tensor, "S C"], length: int, epoch: int, row: int
    ) -> Float[Tensor, "S C"]:
        """Return the `values` of a series in an epoch. Its padding stays zero."""
        generator = np.random.default_rng(derived_seed(self._seed, "augment", epoch, row))
        factor = np.exp(self._series.scaling * generator.standard_normal(values.shape[1], np.float32))
        noise = self._series.jitter * generator.standard_normal((length, values.shape[1]), np.float32)
        changed = values * torch.from_numpy(factor)
        changed[:length] += torch.from_numpy(noise)
        return changed
