"""Random permutations that are computed index by index and never stored."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from foveal.core.runtime import derived_seed

ROUNDS = 6
"""Rounds of a Feistel network."""
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""An odd number whose multiples differ in all bits (Steele, Lea and Flood 2014)."""
Words = NDArray[np.uint64]


def permute_indices(numbers: NDArray[np.int64], size: int, seed: int) -> NDArray[np.int64]:
    """Return the results of a random permutation of `range(size)` for `numbers`. The permutation is not
    stored.

    A Feistel network permutes the numbers of 2k bits (Luby and Rackoff 1988). Results outside the range are
    permuted again until they are inside (cycle walking, Black and Rogaway 2002).
    """
    half, count = max(1, ((size - 1).bit_length() + 1) // 2), len(numbers)
    keys = [np.broadcast_to(np.uint64(derived_seed(seed, round)), count) for round in range(ROUNDS)]
    return _permute(numbers, np.broadcast_to(size, count), np.broadcast_to(np.uint64(half), count), keys)


def permute_in_groups(
    numbers: NDArray[np.int64], sizes: NDArray[np.int64], groups: NDArray[np.int64], seed: int
) -> NDArray[np.int64]:
    """Return the results of random permutations for `numbers`: of `range(sizes[i])` for `numbers[i]`, and
    another permutation for each of the `groups`, whose numbers have one size."""
    bits = np.frexp(sizes - 1)[1]  # the bit length, up to 53 bits
    half = np.maximum(1, (bits + 1) // 2).astype(np.uint64)
    own = groups.astype(np.uint64) * GOLDEN
    keys = [_splitmix64(own + np.uint64(derived_seed(seed, round))) for round in range(ROUNDS)]
    return _permute(numbers, sizes, half, keys)


def _permute(
    numbers: NDArray[np.int64], sizes: NDArray[np.int64], half: Words, keys: Sequence[Words]
) -> NDArray[np.int64]:
    """Permute each number in its range by keys of its own, until it is inside."""
    result = numbers.astype(np.uint64)
    outside = np.arange(len(numbers))
    while len(outside):
        result[outside] = _feistel(result[outside], half[outside], [key[outside] for key in keys])
        outside = outside[result[outside] >= sizes[outside]]
    return result.astype(np.int64)


def shuffled_batch(count: int, batches: int, index: int, seed: int) -> NDArray[np.int64]:
    """Return the rows of batch `index` of a random order of `count` rows.

    The sizes of the `batches` differ by at most one.

    Raises: IndexError: there is no such batch.
    """
    index = range(batches)[index]
    places = np.arange(index * count // batches, (index + 1) * count // batches)
    return permute_indices(places, count, seed)


def _feistel(numbers: Words, half: Words, keys: Sequence[Words]) -> Words:
    low = (np.uint64(1) << half) - np.uint64(1)
    left, right = numbers >> half, numbers & low
    for key in keys:
        left, right = right, left ^ (_splitmix64(right ^ key) & low)
    return (left << half) | right


def _splitmix64(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix bits by the finalizer of SplitMix64 (Steele, Lea and Flood 2014): each output bit depends on every
    input bit."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
