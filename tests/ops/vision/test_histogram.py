"""Histograms of images against their definitions, one pixel at a time."""

import math
from collections import Counter

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from foveal.ops.vision.histogram import (
    code_frequencies,
    color_codes,
    gradient_orientation_votes,
    local_contrast_normalize,
)


def votes_by_definition(image: NDArray[np.float64], orientations: int) -> NDArray[np.float64]:
    C, H, W = image.shape
    at = lambda c, i, j: image[c, min(max(i, 0), H - 1), min(max(j, 0), W - 1)]  # noqa: E731
    found, wide = np.zeros((orientations, H, W)), 180 / orientations
    for i in range(H):
        for j in range(W):
            gradients = [
                (at(c, i, j + 1) - at(c, i, j - 1), at(c, i + 1, j) - at(c, i - 1, j)) for c in range(C)
            ]
            across, down = max(gradients, key=lambda g: math.hypot(*g))
            degrees = math.degrees(math.atan2(down, across)) % 180
            for o in range(orientations):
                away = abs(degrees - (o + 0.5) * wide)
                away = min(away, 180 - away)
                found[o, i, j] = math.hypot(across, down) * max(0, 1 - away / wide)
    return found


@pytest.mark.parametrize(("channels", "size", "orientations"), [(3, (9, 12), 9), (1, (5, 4), 4)])
def test_votes(channels, size, orientations):
    images = torch.randn(2, channels, *size, dtype=torch.float64)
    votes = gradient_orientation_votes(images, orientations)
    for image, found in zip(images, votes, strict=True):
        np.testing.assert_allclose(found, votes_by_definition(image.numpy(), orientations), atol=1e-12)


def test_an_edge_is_the_same_from_both_sides_and_turns_with_the_image():
    images = torch.randn(2, 3, 8, 8, dtype=torch.float64)
    votes = gradient_orientation_votes(images, 6)
    torch.testing.assert_close(gradient_orientation_votes(-images, 6), votes)
    # A quarter turn adds 90 degrees, three of six orientations.
    turned = gradient_orientation_votes(images.rot90(dims=(2, 3)), 6)
    torch.testing.assert_close(turned, votes.rot90(dims=(2, 3)).roll(3, 1))


def test_no_edge_has_no_vote():
    votes = gradient_orientation_votes(torch.full((1, 3, 8, 8), 0.7), 9)
    assert votes.eq(0).all()
    assert local_contrast_normalize(votes, 0.1).eq(0).all()


def test_local_strength():
    """Each cell over the root of what is around it; at a corner that are four cells."""
    cells = torch.rand(2, 5, 3, 4, dtype=torch.float64)
    found = local_contrast_normalize(cells, 0.1)
    for i in range(3):
        for j in range(4):
            around = cells[:, :, max(i - 1, 0) : i + 2, max(j - 1, 0) : j + 2]
            energy = around.square().sum(1).mean((1, 2))
            torch.testing.assert_close(found[:, :, i, j], cells[:, :, i, j] / (energy[:, None] + 0.01).sqrt())


@pytest.mark.parametrize("channels", [1, 3])
def test_boxes_of_colours(channels):
    images = 2 * torch.randn(3, channels, 4, 5)
    codes = color_codes(images, bins=4, width=0.5)
    edges = [-0.5, 0.0, 0.5]
    for image, found in zip(images.numpy(), codes, strict=True):
        levels = [np.digitize(channel, edges).ravel() for channel in image]
        wanted = sum(level * 4**place for place, level in enumerate(reversed(levels)))
        assert found.tolist() == wanted.tolist()


def test_shares():
    codes = torch.randint(7, (3, 50))
    found = code_frequencies(codes, 7, torch.float64)
    for row, numbers in zip(codes.tolist(), found.tolist(), strict=True):
        assert numbers == pytest.approx([Counter(row)[code] / 50 for code in range(7)])
