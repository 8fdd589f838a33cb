"""Receptive fields of windows whose sizes follow from the shapes."""

import torch

from foveal.inspection.layers.receptive_field import ReceptiveFieldTracker

aten = torch.ops.aten


def test_a_position_of_adaptive_pooling_sees_its_share_rounded_up() -> None:
    x = torch.randn(1, 1, 5, 5)
    tracker = ReceptiveFieldTracker(x)
    y = aten._adaptive_avg_pool2d(x, [2, 2])
    tracker.follow(aten._adaptive_avg_pool2d, (x, [2, 2]), y)
    assert tracker.size_of(y) == (3, 3)


def test_every_second_position_doubles_the_distance() -> None:
    x = torch.randn(1, 1, 9, 9)
    tracker = ReceptiveFieldTracker(x)
    half = aten.slice(x, 2, 0, 9, 2)
    tracker.follow(aten.slice, (x, 2, 0, 9, 2), half)
    arguments = (half, torch.randn(1, 1, 3, 3), None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1)
    y = aten.convolution(*arguments)
    tracker.follow(aten.convolution, arguments, y)
    assert tracker.size_of(y) == (5, 3)
