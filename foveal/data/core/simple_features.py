"""Features of sources that need no training: the inputs of a baseline."""

from collections.abc import Iterator

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from foveal.data.core.examples import Examples, RaggedArray
from foveal.ops.ngrams import ngram_codes, ngram_vocabulary, stack_term_weights

SimpleFeatures = tuple[Float[Tensor, "N D"], Float[Tensor, "M D"]]
"""The features of training sources and of held-out sources."""
MAX_NGRAMS, LONGEST_NGRAM = 4096, 2
MAX_STATISTICS = 640
"""Summary statistics of 80 channels. Hardly any source has more."""


def summary_statistics(train: Examples, held_out: Examples) -> SimpleFeatures:
    """Return the mean, deviation, least and largest value of each channel, and of its changes from step to
    step."""
    features = [torch.stack([_summary(row) for row in _rows(examples)]) for examples in (train, held_out)]
    mean, deviation = features[0].mean(0), features[0].std(0, unbiased=False).clamp(min=1e-6)
    return (features[0] - mean) / deviation, (features[1] - mean) / deviation


def bags_of_tokens(train: Examples, held_out: Examples) -> SimpleFeatures:
    """Return the TF-IDF of the most frequent tokens and pairs of tokens (`ops.ngrams`)."""
    train_codes, held_out_codes = (
        [ngram_codes(row, LONGEST_NGRAM) for row in _rows(examples)] for examples in (train, held_out)
    )
    vocabulary = ngram_vocabulary(train_codes, MAX_NGRAMS)
    return tuple(  # type: ignore[return-value]  # two of them
        stack_term_weights(each, vocabulary) for each in (train_codes, held_out_codes)
    )


def _summary(steps: Float[Tensor, "T C"]) -> Float[Tensor, " D"]:
    changes = steps.diff(dim=0) if len(steps) > 1 else torch.zeros_like(steps)
    parts = ((x.mean(0), x.std(0, unbiased=False), x.amin(0), x.amax(0)) for x in (steps, changes))
    return torch.cat([value for part in parts for value in part])


def _rows(examples: Examples) -> Iterator[Tensor]:
    """Yield copies of the rows, one at a time, which may be in files that can't be written."""
    column = examples.columns["source"]
    assert isinstance(column, RaggedArray)
    for row in map(column.__getitem__, range(len(column))):
        yield torch.tensor(row.astype(np.int64) if row.dtype.kind in "iu" else row)
