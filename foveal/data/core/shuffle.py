"""Random permutations that are computed index by index and never stored."""

import numpy as np
from numpy.typing import NDArray

from foveal.core.runtime import derived_seed


def permute_indices(numbers: NDArray[np.int64], size: int, seed: int) -> NDArray[np.int64]:
    """Return the results of a random permutation of `range(size)` for `numbers`. The permutation is not
    stored.

    A Feistel network permutes the numbers of 2k bits (Luby and Rackoff 1988). Results outside the range are
    permuted again until they are inside (cycle walking, Black and Rogaway 2002).
    """
    half = max(1, ((size - 1).bit_length() + 1) // 2)
    keys = [np.uint64(derived_seed(seed, round)) for round in range(6)]
    result = numbers.astype(np.uint64)
    outside = np.arange(len(numbers))
    while len(outside):
        result[outside] = _feistel(result[outside], half, keys)
        outside = outside[result[outside] >= size]
    return result.astype(np.int64)


def shuffled_batch(count: int, batches: int, index: int, seed: int) -> NDArray[np.int64]:
    """Return the rows of batch `index` of a random order of `count` rows.

    The sizes of the `batches` differ by at most one.

    Raises: IndexError: there is no such batch.
    """
    index = range(batches)[index]
    places = np.arange(index * count // batches, (index + 1) * count // batches)
    return permute_indices(places, count, seed)


def _feistel(numbers: NDArray[np.uint64], half: int, keys: list[np.uint64]) -> NDArray[np.uint64]:
    low = np.uint64((1 << half) - 1)
    left, right = numbers >> np.uint64(half), numbers & low
    for key in keys:
        left, right = right, left ^ (_splitmix64(right ^ key) & low)
    return (left << np.uint64(half)) | right


def _splitmix64(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix bits by the finalizer of SplitMix64 (Steele, Lea and Flood 2014): each output bit depends on every
    input bit."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
