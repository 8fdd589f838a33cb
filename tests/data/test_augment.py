"""Changes of images are equal to what a loop over them does, and each can be undone."""

import numpy as np
import pytest
import torch
from torch import Tensor

from foveal.data.augment import cut_out, flipped, shifted


@pytest.fixture
def images() -> Tensor:
    return torch.randn(6, 3, 8, 10)


def each(count: int, most: int, seed: int = 0) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).integers(0, most, count))


def test_shifted(images):
    top, left = each(6, 5, 1), each(6, 5, 2)
    found = shifted(images, top, left, 2)
    for number, image in enumerate(images.numpy()):
        padded = np.pad(image, ((0, 0), (2, 2), (2, 2)))
        y, x = top[number].item(), left[number].item()
        assert (found[number].numpy() == padded[:, y : y + 8, x : x + 10]).all()
    middle = torch.full((6,), 2)
    assert (shifted(images, middle, middle, 2) == images).all()


def test_flipped(images):
    chosen = each(6, 2) == 1
    found = flipped(images, chosen)
    assert 0 < chosen.sum() < 6
    for number, image in enumerate(images.numpy()):
        assert (found[number].numpy() == (image[..., ::-1] if chosen[number] else image)).all()
    assert (flipped(found, chosen) == images).all()


@pytest.mark.parametrize("side", [1, 2, 5, 30])
def test_cut_out(side, images):
    row, column = each(6, 8, 3), each(6, 10, 4)
    found = cut_out(images, row, column, side)
    for number, image in enumerate(images.numpy().copy()):
        for y in range(8):
            for x in range(10):
                start = row[number] - side // 2, column[number] - side // 2
                if start[0] <= y < start[0] + side and start[1] <= x < start[1] + side:
                    image[:, y, x] = 0
        assert (found[number].numpy() == image).all()
