"""Permutations of groups are computed number by number, and each group has its own."""

from collections import Counter
from math import factorial

import numpy as np
import pytest

from foveal.data.core.shuffle import permute_in_groups


def permuted(sizes: list[int], seed: int) -> list[tuple[int, ...]]:
    """Return the permutation of each group."""
    groups = np.repeat(np.arange(len(sizes)), sizes)
    inside = np.concatenate([np.arange(size) for size in sizes])
    result = permute_in_groups(inside, np.repeat(sizes, sizes), groups, seed)
    return [tuple(result[groups == group].tolist()) for group in range(len(sizes))]


def test_each_number_of_a_group_once():
    sizes = [1, 2, 3, 4, 5, 16, 17, 255, 256, 257, 1000]
    for seed in range(5):
        for size, result in zip(sizes, permuted(sizes, seed), strict=True):
            assert sorted(result) == [*range(size)]


def test_a_number_alone_has_the_result_that_it_has_among_others():
    sizes = [40, 7, 90]
    for group, result in enumerate(permuted(sizes, 3)):
        for place in (0, 5, sizes[group] - 1):
            alone = permute_in_groups(np.array([place]), np.array([sizes[group]]), np.array([group]), 3)
            assert alone.tolist() == [result[place]]


def test_groups_and_seeds_have_other_orders():
    first, second = permuted([50, 50], 0)
    (third, _) = permuted([50, 50], 1)
    assert len({first, second, third}) == 3
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.5


@pytest.mark.parametrize("size", [2, 3, 4])
def test_all_orders_of_a_few_are_about_as_likely(size):
    """By groups, and by seeds."""
    for orders in (
        permuted([size] * 3000, 5),
        [order for seed in range(1000) for order in permuted([size] * 3, seed)],
    ):
        counts = Counter(orders)
        assert len(counts) == factorial(size)
        expected = len(orders) / factorial(size)
        assert all(0.5 * expected < count < 1.7 * expected for count in counts.values()), counts
