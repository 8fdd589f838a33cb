"""SPL by the formula of Anderson et al. 2018, in fractions."""

from fractions import Fraction

import torch

from foveal.tasks.navigation.path_length import success_weighted_by_path_length

WALKS = [
    (True, 4, 4),
    (True, 4, 8),
    (True, 5, 4),
    (False, 4, 4),
    (True, 7, 9),
    (False, 1, 0),
    (True, 0, 0),
    (True, 0, 3),
]
"""Whether it arrived, the shortest way, and the one that was taken."""


def test_success_weighted_by_path_length() -> None:
    each = [
        Fraction(int(arrived)) * (Fraction(shortest, longest) if (longest := max(shortest, taken)) else 1)
        for arrived, shortest, taken in WALKS
    ]
    assert each[:4] == [1, Fraction(1, 2), 1, 0]
    found = success_weighted_by_path_length(*(torch.tensor(column) for column in zip(*WALKS, strict=True)))
    torch.testing.assert_close(found, torch.tensor([float(one) for one in each]))
